import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { servicePackages } from "../../src/services/registry.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { isMissing, run } from "./tools.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const readme = read("README.md");
const servicesPage = read("docs/services.md");
/** The server address that the pages use. */
const printedAuthority = "127.0.0.1:8080";

/** Lists the pages that the table of services links to. */
function servicePages(): string[] {
  return [...new Set([...servicesPage.matchAll(/src\/services\/[\w-]+\/README\.md/g)].map(([path]) => path))];
}

describe("the calls in the table of docs/services.md", { timeout: 120_000 }, () => {
  const calls = [...servicesPage.matchAll(/\| `((?:curl|grpcurl) [^`]*)` \|/g)].map(([, call = ""]) => call);
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer({ dataDir: makeTemporaryDirectory(() => {}) });
    return async () => void (await server.stop());
  });

  it("cover each service once", () => {
    expect(calls.length).toBe(13);
  });

  for (const call of calls) {
    const program = call.split(" ")[0] ?? "";
    const isSkipped = isMissing(program);
    it.skipIf(isSkipped)(isSkipped ? `${call} (needs ${program})` : call, async () => {
      const answer = await run("sh", ["-c", call.replaceAll(printedAuthority, server.authority)]);
      expect(answer).toMatchObject({ code: 0, stderr: "" });
      expect(answer.stdout).toMatch(expectedOf(call));
    });
  }
});

/** Matches the part of a call's output that never changes. */
function expectedOf(call: string): RegExp {
  if (call.includes("/v1/projects/")) return /^\{"locations":\[\{"name":"projects\/demo\/locations\/global",/;
  if (call.endsWith(" list")) return /^pqc\.PqcService\npqc\.TokenService$/m;
  return call.includes("Health/Check") ? /"status": "SERVING"/ : /^\{"status":"success",/;
}

describe("docs/getting-started.md", () => {
  it("shows the output of a start", { timeout: 120_000 }, async () => {
    const dataDir = makeTemporaryDirectory();
    const { stdout } = await (await startServer({ dataDir })).stop();
    const printed = stdout
      .replaceAll(/127\.0\.0\.1:\d+/g, printedAuthority)
      .replaceAll(dataDir, "data")
      .replace(/^Cryptography: \S.*$/m, "Cryptography: …");
    expect(read("docs/getting-started.md")).toContain(printed.trim());
  });
});

describe("the README", () => {
  it("has at most 150 lines", () => {
    expect(readme.split("\n").length).toBeLessThanOrEqual(150);
  });

  it.each(["npm start", "npm test", ...npmScriptsOf(readme)])("names an existing script: %s", (command) => {
    const { scripts } = JSON.parse(read("package.json"));
    expect(Object.keys(scripts)).toContain(command.replace(/^npm (run )?/, ""));
  });
});

describe("docs/services.md", () => {
  it("links to the page of each package of services", () => {
    const packages = servicePackages.map(({ name }) => name.replaceAll(".", "-"));
    expect(
      servicePages()
        .map((path) => path.split("/")[2])
        .sort(),
    ).toEqual(packages.sort());
  });
});

function npmScriptsOf(text: string): string[] {
  return [...new Set([...text.matchAll(/\bnpm run [a-z]+/g)].map(([command]) => command))];
}
