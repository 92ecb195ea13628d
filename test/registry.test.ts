/**
 * An additional package needs one folder and one entry: then the whole server and the command line know it.
 */
import { existsSync, globSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import type { ServiceProfiles } from "../src/calls/service-profile.ts";
import { createVerbTable } from "../src/cli/groups.ts";
import { runCommandLine } from "../src/cli/run.ts";
import { collectPackages, type ServicePackage, servicePackages } from "../src/services/registry.ts";
import { greetingPackage } from "./greeting/package.ts";
import { npmDrivers } from "./interop/drivers.ts";
import { callRest } from "./services/answers.ts";
import { endAfterAll } from "./support/at-end.ts";
import { startApp } from "./support/start-app.ts";
import { makeTemporaryDirectory } from "./support/temporary-directory.ts";
import { loadPackages } from "./support/whole-program.ts";

const serviceName = "greeting.GreetingService";
const packages = [...servicePackages, greetingPackage];
const atEnd = endAfterAll();
let url: string;

beforeAll(async () => {
  ({ url } = await startApp(atEnd, [], packages));
}, 180_000);

const readText = async (path: string): Promise<string> => (await fetch(`${url}${path}`)).text();

/** Makes a call over gRPC; server reflection describes it. */
function call(service: string, method: string, request: Record<string, string>) {
  const client = npmDrivers.find(({ name }) => name.startsWith("@grpc/grpc-js"));
  return client?.call(url, { service, method, request, headers: {} });
}

/**
 * Runs the command line with all packages.
 *
 * @returns its output
 */
async function qsp(...args: string[]): Promise<string> {
  let text = "";
  const write = vi.spyOn(process.stdout, "write").mockImplementation((chunk, ...more) => {
    text += chunk;
    for (const done of more) if (typeof done === "function") done();
    return true;
  });
  try {
    expect(await runCommandLine([...args, "--url", url], createVerbTable(), async () => packages)).toBe(0);
  } finally {
    write.mockRestore();
  }
  return text;
}

describe("a package added to the registry", { timeout: 120_000 }, () => {
  it("is served over gRPC with reflection, and counted at /metrics", async () => {
    expect(await call(serviceName, "Greet", { name: "Ada" })).toEqual({
      answer: { greeting: "Hello, Ada!" },
    });
    expect(await readText("/metrics")).toContain(`method="${serviceName}/Greet"`);
  });

  it("is served over REST", async () => {
    const { json } = await callRest(url, "POST /api/greeting/greet", { name: "Ada" });
    expect(json).toEqual({ greeting: "Hello, Ada!" });
  });

  it("has its own health status", async () => {
    const outcome = await call("grpc.health.v1.Health", "Check", { service: serviceName });
    expect(outcome).toEqual({ answer: { status: "SERVING" } });
  });

  it("is described in /openapi.json, with its examples", async () => {
    const { paths } = JSON.parse(await readText("/openapi.json"));
    const { operationId, requestBody } = paths["/api/greeting/greet"].post;
    expect(operationId).toBe("greeting_GreetingService_Greet");
    expect(requestBody.content["application/json"].example).toEqual({ name: "Ada" });
  });

  it("is listed for the console", async () => {
    const response = await fetch(url, { headers: { accept: "text/html" } });
    expect(await response.text()).toMatch(new RegExp(`name="qsp-services" content="[^"]*${serviceName}`));
  });

  it("is called by qsp call and checked by qsp health", async () => {
    expect(JSON.parse(await qsp("call", `${serviceName}/Greet`, '{"name":"Ada"}'))).toEqual({
      greeting: "Hello, Ada!",
    });
    expect(await qsp("health")).toMatch(new RegExp(`^${serviceName} +UP$`, "m"));
  });

  it("can be chosen by its name", async () => {
    const { server } = await startApp(onTestFinished, ["--services", "greeting"], packages);
    const paths = server.transcoder.routes.map(({ template }) => template.text);
    expect(paths.filter((path) => path.startsWith("/api/"))).toEqual([
      "/api/greeting/greet",
      "/api/greeting/health",
    ]);
  });
});

it("a start that a package fails closes the store", { timeout: 120_000 }, async () => {
  const failing: ServicePackage = {
    ...greetingPackage,
    async load() {
      return { ...(await greetingPackage.load()), openServices: () => Promise.reject(new Error("no port")) };
    },
  };
  const dataDir = makeTemporaryDirectory();
  const start = startApp(onTestFinished, ["--data-dir", dataDir], [...servicePackages, failing]);
  await expect(start).rejects.toThrow("no port");
  // SQLite removes its log when the last connection closes.
  expect(readdirSync(dataDir)).not.toContain("qsp.db-wal");
});

/** Returns whether profiles have rows, because the protos do not declare access. */
function isThirdParty(profiles: ServiceProfiles = {}): boolean {
  return Object.values(profiles).some(({ rpcs }) => rpcs !== undefined);
}

describe("extension packages", () => {
  const collect = async (after?: string): Promise<string[]> => {
    const added = { ...greetingPackage, ...(after !== undefined && { after }) };
    return (await collectPackages([{}, { packages: async () => [added] }])).map(({ name }) => name);
  };
  const core = servicePackages.map(({ name }) => name);

  it("come last, or after the package that they name", async () => {
    expect(await collect()).toEqual([...core, "greeting"]);
    expect(await collect("pqc")).toEqual(["pqc", "greeting", ...core.slice(1)]);
  });

  it("keep their order if they name the same package", async () => {
    const after = "pqc";
    const packages = ["first", "second"].map((name) => ({ ...greetingPackage, name, after }));
    const names = (await collectPackages(packages.map((one) => ({ packages: async () => [one] })))).map(
      ({ name }) => name,
    );
    expect(names.slice(0, 3)).toEqual(["pqc", "first", "second"]);
  });

  it("cannot come after an unknown package", async () => {
    await expect(collect("pqd")).rejects.toThrow("greeting follows pqd, which is not a package");
  });
});

describe("the registry", () => {
  const root = join(import.meta.dirname, "..");

  it("contains every proto of ours that declares services", () => {
    const own = servicePackages.filter(({ profiles }) => !isThirdParty(profiles));
    const listed = own.flatMap(({ files }) => files.map(({ name }) => `proto/${name}.proto`));
    // Extensions have theirs in their own folders.
    const declared = own.flatMap(({ name }) => globSync(`proto/${name}/*_service.proto`, { cwd: root }));
    expect(listed.sort()).toEqual(declared.sort());
  });

  it.each(servicePackages.map(({ name }) => name))("has the folder of %s, with its page", (name) => {
    for (const file of ["README.md", "module.ts", "examples.ts"])
      expect(existsSync(join(root, "src/services", name.replaceAll(".", "-"), file)), file).toBe(true);
  });

  it("has a profile for each third-party service, with one row for each call and no other", async () => {
    const thirdParty = (await loadPackages()).filter(({ profiles }) => isThirdParty(profiles));
    for (const { files, profiles = {} } of thirdParty) {
      const services = files.flatMap((file) => file.services);
      expect(Object.keys(profiles).sort()).toEqual(services.map(({ typeName }) => typeName).sort());
      for (const { typeName, methods } of services)
        expect(Object.keys(profiles[typeName]?.rpcs ?? {}).sort()).toEqual(
          methods.map(({ name }) => name).sort(),
        );
    }
  });
});
