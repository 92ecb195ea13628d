import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { prepare } from "../../deploy/compose/prepare.ts";
import { findEnvoy } from "../../envoy/edge.ts";
import { readConfig } from "../../src/config.ts";
import { isMissing, run } from "../interop/tools.ts";
import { startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { deployFolder, readDeployed } from "./unit-file.ts";

const root = join(deployFolder, "..");
const dockerfile = readDeployed("Dockerfile");
const [, image = ""] = dockerfile.split(/^FROM gcr\.io\/distroless\/.*$/m);

/**
 * The user of the image. Tests running as root start the server as this user, who can write only to the data
 * directory.
 */
const imageUser = 65_532;
const isRoot = process.geteuid?.() === 0;
const user = isRoot ? { uid: imageUser, gid: imageUser } : {};

/** Reads the array of an instruction, such as ENTRYPOINT. */
function readInstruction(name: string): string[] {
  const [, json = "[]"] = new RegExp(`^${name} (\\[.*\\])$`, "m").exec(image) ?? [];
  return JSON.parse(json);
}

/**
 * Creates the image's file system from the local build.
 *
 * @returns its root
 */
function layOut(): string {
  const target = makeTemporaryDirectory();
  chmodSync(target, 0o755);
  for (const [, from = "", to = ""] of image.matchAll(/^COPY --from=build (\S+) (\S+)$/gm)) {
    const source = from === "/usr/local/bin/qsp-node" ? "node_modules/.bin/node" : from.replace("/src/", "");
    const path = to.startsWith("/") ? join(target, to) : join(target, "opt/qsp", to);
    // Without the native provider if it is not built.
    if (from.startsWith("/src/native") && !existsSync(join(root, source))) continue;
    mkdirSync(dirname(path), { recursive: true });
    cpSync(join(root, source), path, { recursive: true, dereference: true });
  }
  return target;
}

describe("the image", () => {
  it.skipIf(isMissing("hadolint"))("passes the hadolint linter", async () => {
    const passed = { code: 0, stdout: "", stderr: "" };
    expect(await run("hadolint", [join(deployFolder, "Dockerfile")])).toEqual(passed);
  });

  it("contains all files that the server, its pages, its health check and a backup need", async () => {
    const target = layOut();
    const inImage = (text: string): string => (text.startsWith("/") ? join(target, text) : text);
    const [program = "", ...args] = readInstruction("ENTRYPOINT").map(inImage);
    const dataDir = makeTemporaryDirectory();
    if (isRoot) chownSync(dataDir, imageUser, imageUser);
    const env = { PATH: "", QSP_AUTH: "token" };
    const server = await startServer({
      dataDir,
      how: { command: [program, ...args], cwd: target, env, ...user },
    });
    onTestFinished(() => void server.stop("SIGKILL"));
    const { url } = server;
    const [, check = "[]"] = /HEALTHCHECK [^\n]*\\\n +CMD (\[.*\])/.exec(image) ?? [];
    const [probe = "", ...words]: string[] = JSON.parse(check);
    const at = (address: string) =>
      words.map((word) => (word.startsWith("http://") ? address : inImage(word)));
    expect(await run(inImage(probe), at(url))).toMatchObject({ code: 0 });
    const backup = ["backup", join(dataDir, "one.backup"), "--data-dir", dataDir];
    expect(await run(program, [...args, ...backup])).toMatchObject({ code: 0 });
    const archive = gunzipSync(await (await fetch(`${url}/protos.tar.gz`)).bytes()).toString();
    expect(archive).toContain(readFileSync(join(root, "proto/kms/kms_service.proto"), "utf8"));
    expect(readInstruction("CMD")).toEqual(["serve"]);
    expect(await server.stop()).toMatchObject({ code: 0 });
    // Without a server, the container is unhealthy.
    expect((await run(inImage(probe), at(url))).code).not.toBe(0);
  });

  it("runs as a non-root user, with settings that the server accepts", () => {
    expect(image).toContain(`\nUSER ${imageUser}:${imageUser}\n`);
    const [, pairs = ""] = /^ENV (.*)$/m.exec(image) ?? [];
    const env = Object.fromEntries(pairs.split(" ").map((pair) => pair.split("=")));
    expect(readConfig([], env)).toMatchObject({ host: "0.0.0.0", port: 8080, auth: "token" });
  });

  it("is built with the packages of every workspace", () => {
    const { workspaces } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const [copied = ""] = dockerfile.split("RUN npm ci");
    const context = readDeployed("Dockerfile.dockerignore").split("\n");
    for (const workspace of workspaces) {
      expect(copied).toContain(`\nCOPY ${workspace}/package.json ./${workspace}/package.json\n`);
      expect(context).toContain(`!${workspace}/package.json`);
    }
  });

  it("is built without the machine's keys and stores", () => {
    const [first, ...rest] = readDeployed("Dockerfile.dockerignore")
      .split("\n")
      .filter((line) => !line.startsWith("#"));
    expect(first).toBe("*");
    expect(rest.filter((line) => /!(data|try|deploy|\.|\*)/.test(line))).toEqual([]);
  });
});

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly user?: string;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}
const compose: {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Record<string, { file: string }>;
} = parse(readDeployed("compose.yaml"), { merge: true });

/** What prepare.ts creates. */
const local = join(makeTemporaryDirectory(afterAll), "local");
beforeAll(() => prepare(local), 180_000);

describe("compose.yaml", () => {
  it.skipIf(isMissing("check-jsonschema"))("matches the schema of the Compose Specification", async () => {
    const args = ["--builtin-schema", "vendor.compose-spec", join(deployFolder, "compose.yaml")];
    expect(await run("check-jsonschema", args)).toMatchObject({ code: 0 });
  });

  it.each(Object.entries(compose.services))(
    "runs %s without root, privileges or a writable file system",
    (_name, service) => {
      expect(service).toMatchObject({
        read_only: true,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
        user: expect.not.stringMatching(/^(root|0)/),
      });
      for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
    },
  );

  it("gives the three servers settings that they accept", () => {
    for (const name of ["qsp-1", "qsp-2", "qsp-3"]) {
      const env = compose.services[name]?.environment ?? {};
      expect(readConfig([], env)).toMatchObject({ auth: "token", issuerUrl: "https://localhost:8443" });
    }
  });

  it("mounts only files that are in the repository or that prepare.ts creates", () => {
    const mounted = Object.values(compose.services).flatMap(({ volumes = [] }) => volumes);
    const sources = mounted
      .filter((volume) => volume.startsWith("./"))
      .map((volume) => volume.split(":")[0] ?? "");
    const secrets = Object.values(compose.secrets).map(({ file }) => file);
    for (const source of [...sources, ...secrets, "compose/local/server.env"]) {
      const path = source.replace(/^\.\//, "");
      const here = path.startsWith("compose/local")
        ? path.replace("compose/local", local)
        : join(deployFolder, path);
      expect([source, existsSync(here)]).toEqual([source, true]);
    }
  });
});

describe("prepare.ts", { timeout: 180_000 }, () => {
  it("creates secrets that only their owner can read, and keeps them when it runs again", async () => {
    const read = (name: string) => readFileSync(join(local, name), "utf8");
    const names = ["master.key", "postgres.password", "grafana.password", "server.env"];
    const before = names.map(read);
    expect(statSync(local).mode & 0o777).toBe(0o700);
    for (const name of ["master.key", "grafana.password", "server.env", "prometheus.secret"])
      expect(statSync(join(local, name)).mode & 0o777).toBe(0o600);
    await prepare(local);
    expect(names.map(read)).toEqual(before);
    const [, url = ""] = /^QSP_DATABASE_URL=(.*)$/m.exec(read("server.env")) ?? [];
    expect(readConfig([], { QSP_DATABASE_URL: url }).databaseUrl).toContain("@postgres:5432/qsp");
  });

  it.skipIf(process.env.QSP_TEST_REQUIRE_ALL !== "1" && findEnvoy() === undefined)(
    "creates a configuration that Envoy accepts",
    async () => {
      for (const name of ["envoy.yaml", "certificate.yaml"]) {
        const path = join(local, "envoy", name);
        const text = readFileSync(path, "utf8");
        expect(text).toContain("/etc/envoy");
        const moved = text.replaceAll("/etc/envoy-tls", join(local, "tls"));
        writeFileSync(path, moved.replaceAll("/etc/envoy/", `${join(local, "envoy")}/`));
      }
      const path = join(local, "envoy/envoy.yaml");
      const { code, stdout, stderr } = await run(findEnvoy() ?? "envoy", ["--mode", "validate", "-c", path]);
      expect([code, stdout + stderr]).toEqual([0, expect.stringContaining("OK")]);
    },
  );
});
