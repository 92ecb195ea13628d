/** The package that `npm pack` creates: its content, and what works once it is installed. */
import { execFile } from "node:child_process";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { services } from "../../src/client/services.ts";
import { callRest } from "../services/answers.ts";
import { inheritedEnvironment } from "../support/environment.ts";
import { type PackageRegistry, startRegistry } from "../support/package-registry.ts";
import { type Launch, type RunningServer, startServer } from "../support/start-server.ts";
import { loadPackages } from "../support/whole-program.ts";
import { copyClone, root } from "./copies.ts";

const run = promisify(execFile);
const packageJson = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const timeout = 360_000;

/** On disk: a 120 MB Node is installed there. */
const scratch = mkdtempSync(join(tmpdir(), "qsp-package-"));
const app = join(scratch, "app");
const installed = join(app, "node_modules/quantum-safe-playground");
const bin = join(app, "node_modules/.bin");
let registry: PackageRegistry;
let tarball: string;
let server: RunningServer;

/** The environment of a user with the machine's own Node and no clone. */
function environment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"));
  const kept = Object.entries(inheritedEnvironment()).filter(([name]) => !/^(npm_|NODE_)/i.test(name));
  return {
    ...Object.fromEntries(kept),
    PATH: path.join(delimiter),
    XDG_CACHE_HOME: join(scratch, "cache"),
    XDG_STATE_HOME: join(scratch, "state"),
    ...more,
  };
}

/** Flags that let npm install from the test's registry only. */
const npmFlags = () => [
  ...["--no-audit", "--no-fund", "--registry", registry.url, "--cache", join(scratch, "npm")],
];

beforeAll(async () => {
  const packing = await run("npm", ["pack", "--json", "--pack-destination", scratch], {
    cwd: await makeClone(),
    env: environment(),
  });
  const name = /quantum-safe-playground-[\w.-]+\.tgz/.exec(packing.stdout)?.[0] ?? "";
  tarball = join(scratch, name);
  registry = await startRegistry(packageJson);
  mkdirSync(app);
  await run("npm", ["install", ...npmFlags(), tarball], { cwd: app, env: environment() });
  server = await startInstalled(join(scratch, "data"));
}, 300_000);

afterAll(async () => {
  registry?.close();
  await server?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

/**
 * Creates a clone with its npm packages installed, but without what a start adds: the link to Node 26 and the
 * compiled program. The first script in it runs on the machine's own Node.
 */
async function makeClone(): Promise<string> {
  const clone = join(scratch, "clone");
  copyClone(clone);
  // Hard links to files: a link to a folder would show up in paths. cp handles the many nested folders.
  const [from, to] = [join(root, "node_modules/."), join(clone, "node_modules")];
  await run("cp", ["-al", from, to]).catch(() => run("cp", ["-a", from, to]));
  rmSync(join(to, ".bin"), { recursive: true });
  return clone;
}

function startInstalled(dataDir: string, args: readonly string[] = []): Promise<RunningServer> {
  const how: Launch = { command: [join(bin, "qsp")], cwd: app, env: environment() };
  return startServer({ dataDir, args, how });
}

/**
 * Runs an installed command to its end.
 *
 * @returns its output
 */
async function command(name: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return (await run(join(bin, name), args, { cwd: app, env: environment(env) })).stdout;
}

describe("the tarball", { timeout }, () => {
  let paths: string[];

  beforeAll(() => {
    paths = globSync("**/*", { cwd: installed, exclude: ["node_modules/**"] })
      .map((path) => path.replaceAll("\\", "/"))
      .filter((path) => statSync(join(installed, path)).isFile());
  });

  it("contains the program, its files and its pages, and no sources, tests, stores or keys", () => {
    const extensions = paths.filter((path) => path.startsWith("extensions/"));
    expect(
      extensions.filter((path) => !/^[^/]+\/[\w-]+\/(README\.md$|[\w-]+\.mjs$|deploy\/)/.test(path)),
    ).toEqual([]);
    const others = paths.filter((path) => !extensions.includes(path));
    const folders = new Set(others.map((path) => path.split("/")[0]));
    expect([...folders].sort()).toEqual([
      ...["CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md"],
      ...["deploy", "docs", "envoy", "lib", "package.json", "proto", "src"],
    ]);
    expect(paths.filter((path) => path.startsWith("src/") && !path.endsWith("/README.md")).sort()).toEqual([
      "src/qsp.mjs",
      "src/setup/find-node.mjs",
      "src/setup/launch.mjs",
    ]);
    expect(
      paths.filter((path) => /\.test\.|\.(db|key|node|pem|log|env|tgz)$|master\.key/.test(path)),
    ).toEqual([]);
    expect(paths.filter((path) => /(?<!\.d)\.ts$/.test(path))).toEqual([]);
  });

  it("contains no path of the machine where it was packed", () => {
    const naming = paths.filter((path) => {
      const content = readFileSync(join(installed, path), "latin1");
      return content.includes(root) || /["'`](?:file:\/\/)?\/(?:home|root|Users)\//.test(content);
    });
    expect(naming).toEqual([]);
  });

  it("is smaller than 6 MB, and 25 MB when installed", () => {
    expect(statSync(tarball).size).toBeLessThan(6_000_000);
    const bytes = paths.reduce((sum, path) => sum + statSync(join(installed, path)).size, 0);
    expect(bytes).toBeLessThan(25_000_000);
  });

  it("installs the client's packages and Node 26, but no packages that are bundled into the program", () => {
    const isNode = (name: string): boolean => /^node-(bin-)?(linux|darwin|win)/.test(name);
    const names = [...registry.fetched].filter((name) => !isNode(name)).sort();
    expect(names).toEqual([
      ...["@bufbuild/cel", "@bufbuild/cel-spec", "@bufbuild/protobuf", "@bufbuild/protovalidate"],
      ...["@bufbuild/re2", "@connectrpc/connect", "@connectrpc/connect-web"],
      ...["@noble/ciphers", "@noble/curves", "@noble/hashes", "@noble/post-quantum", "hpke"],
    ]);
    expect([...registry.fetched].filter(isNode)).toHaveLength(1);
  });
});

describe("the installed program", { timeout }, () => {
  it("starts on the machine's own Node, which may be version 20", async () => {
    const { stdout } = await run("node", ["--version"], { env: environment() });
    expect(Number.parseInt(stdout.slice(1), 10)).toBeGreaterThanOrEqual(20);
    expect((await command("qsp", ["--version"])).split(/\s/)[0]).toBe(packageJson.version);
    expect(await command("qsp", ["help"])).toContain("usage: qsp VERB");
  });

  it("signs over REST and with qsp call", async () => {
    const data = { data: "aGVsbG8=" };
    const { json } = await callRest(server.url, "POST /api/grpc/sign", data);
    expect(json).toMatchObject({ status: "success", algorithm: "ML-DSA-65" });
    const call = ["call", "pqc.PqcService/SignData", JSON.stringify(data), "--url", server.url];
    expect(await command("qsp", call)).toContain("ML-DSA-65");
  });

  it("serves the console, the reference and the protos", async () => {
    const read = async (path: string) => {
      const answer = await fetch(new URL(path, server.url), { headers: { accept: "text/html, */*" } });
      expect(answer.status).toBe(200);
      return answer.text();
    };
    for (const page of ["/", "/reference"]) {
      const files = [...(await read(page)).matchAll(/(?:src|href)="(\/console\/[^"]+)"/g)];
      expect(files.length).toBeGreaterThanOrEqual(2);
      for (const [, path = ""] of files) expect((await read(path)).length).toBeGreaterThan(100);
    }
    expect(JSON.parse(await read("/openapi.json"))).toMatchObject({ info: { version: packageJson.version } });
    await read("/protos.tar.gz");
  });

  it.each(Object.keys(packageJson.bin))("is started by %s, which reports what is missing", async (name) => {
    const call = run(join(bin, name), ["no-such-verb"], { cwd: app, env: environment() });
    await expect(call).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(/^qsp: [^\n]+\n$/) });
  });

  it("names source lines in stack traces", async () => {
    const start = join(installed, "lib/start.js");
    const source = `process.argv.splice(1, 9, ${JSON.stringify(start)}, "help");
      process.stdout.write = () => { throw new Error("stop"); };
      await import(${JSON.stringify(start)});`;
    writeFileSync(join(app, "trace.mjs"), source);
    const { stderr } = await run(process.execPath, ["trace.mjs"], { cwd: app, env: environment() }).catch(
      (error) => error,
    );
    expect(stderr).toMatch(/src\/cli\/run\.ts:\d+:\d+/);
  });

  it("caches V8's compiled code in the user's cache, and writes nothing into the package", async () => {
    await command("qsp", ["--version"]);
    expect(globSync("quantum-safe-playground/*/*", { cwd: join(scratch, "cache") })).not.toEqual([]);
    expect(existsSync(join(installed, "dist"))).toBe(false);
  });

  it("reports in one sentence that Node 26 was not installed", async () => {
    const moved = join(app, "node_modules/.moved");
    const [node = ""] = globSync("node_modules/node-*-*", { cwd: app });
    await run("mv", [join(app, node), moved]);
    try {
      const call = run("node", [join(bin, "qsp"), "help"], { cwd: app, env: environment() });
      await expect(call).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/^qsp: this is Node\.js v\d\S+, and the program needs 26: [^\n]+\n$/),
      });
    } finally {
      await run("mv", [moved, join(app, node)]);
    }
  });
});

describe("the globally installed program", { timeout }, () => {
  it("finds the Node that npm installed inside it", async () => {
    const prefix = join(scratch, "global");
    const env = environment();
    await run("npm", ["install", "--global", "--prefix", prefix, ...npmFlags(), tarball], {
      cwd: scratch,
      env,
    });
    const { stdout } = await run(join(prefix, "bin/qsp"), ["--version"], { cwd: scratch, env });
    expect(stdout.split(/\s/)[0]).toBe(packageJson.version);
  });
});

/** The example program in the documentation, adapted to this test's server. */
const page = readFileSync(join(root, "docs/clients.md"), "utf8");
const printedUrl = "http://127.0.0.1:8080";
const [, typed = "", clientProgram = "", printed = ""] =
  /^```sh\n(cat > client\.mjs <<'END'\n(.*?)^END$.*?)^```\n\n```text\n(.*?)^```/ms.exec(page) ?? [];

/**
 * Follows the documentation in the folder where the package is installed.
 *
 * @returns the output
 */
async function followPage(url: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const script = typed.replace(printedUrl, url);
  return (await run("sh", ["-e", "-c", script], { cwd: app, env: environment(env) })).stdout;
}

describe("the installed client", { timeout }, () => {
  it("has every service that a server may offer", async () => {
    const served = (await loadPackages()).flatMap(({ files }) => files.flatMap((file) => file.services));
    const names = served.map(({ typeName }) => typeName).concat("grpc.health.v1.Health");
    expect(Object.values(services).map(({ typeName }) => typeName)).toEqual(expect.arrayContaining(names));
  });

  it("calls and verifies as documented, on the machine's own Node", async () => {
    expect(await followPage(server.url)).toBe(printed);
  });

  it("calls a server with a private CA's certificate only if Node trusts the CA", async () => {
    const dataDir = join(scratch, "tls");
    const tls = join(dataDir, "tls");
    await command("qsp", ["ca", "init", "--data-dir", dataDir]);
    await command("qsp", ["ca", "issue", "localhost", "127.0.0.1", "--data-dir", dataDir]);
    const files = ["--tls-cert", join(tls, "gateway.crt"), "--tls-key", join(tls, "gateway.key")];
    const secure = await startInstalled(dataDir, files);
    try {
      expect(await followPage(secure.url, { NODE_EXTRA_CA_CERTS: join(tls, "ca.crt") })).toBe(printed);
      const [, causes = ""] = /whose cause is (.*?)\./.exec(page) ?? [];
      const named = causes.split(" or ").map((name) => name.replaceAll("`", ""));
      await expect(followPage(secure.url)).rejects.toThrow(new RegExp(named.join("|")));
    } finally {
      await secure.stop();
    }
  });

  it("has types that compile in strict mode", async () => {
    writeFileSync(join(app, "client.mts"), clientProgram);
    writeFileSync(join(app, "wrong.mts"), clientProgram.replace('alias: "from the package"', "alias: 1"));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const target = ["--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "--types", ""];
    const flags = ["--ignoreConfig", "--noEmit", "--strict", ...target];
    const compile = (file: string) => run(process.execPath, [tsc, file, ...flags], { cwd: app });
    await compile("client.mts");
    const stdout = expect.stringContaining("wrong.mts(");
    await expect(compile("wrong.mts")).rejects.toMatchObject({ stdout });
  });

  it("can be bundled for a browser without any server or Node code", async () => {
    writeFileSync(join(app, "page.mjs"), clientProgram);
    const { metafile } = await build({
      ...{ absWorkingDir: app, entryPoints: ["page.mjs"], bundle: true, write: false, metafile: true },
      ...{ format: "esm", platform: "browser", target: "es2022", minify: true, logLevel: "silent" },
    });
    const inputs = Object.keys(metafile.inputs);
    const own = inputs.filter((path) => path.includes("quantum-safe-playground"));
    const client = /\/lib\/(gen|src\/(client|audit\/entry-text\.js|crypto\/(encryption-head|noble)\.js))/;
    expect(own.filter((path) => !client.test(path))).toEqual([]);
    const packages = new Set(
      inputs.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
    );
    expect([...packages].sort()).toEqual([
      ...["@bufbuild/protobuf", "@bufbuild/protovalidate", "@connectrpc/connect", "@connectrpc/connect-web"],
      ...["@noble/curves", "@noble/hashes", "@noble/post-quantum", "hpke", "quantum-safe-playground"],
    ]);
  });
});
