/** A server with several event loops: as exact, and as easy to stop, as a server with one. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { credentials, Client as GrpcJsClient, status } from "@grpc/grpc-js";
import { pino } from "pino";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { KmsService, SignRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { readConfig } from "../../src/config.ts";
import { findPort } from "../../src/server/find-port.ts";
import { countWorkers } from "../../src/settings/worker-settings.ts";
import type { ToWorker } from "../../src/workers/messages.ts";
import { Supervisor, type SupervisorClock } from "../../src/workers/supervisor.ts";
import { present } from "../services/answers.ts";
import { connectPeer, openAsPeer } from "../services/vpn-peer.ts";
import { type AtEnd, endAfterAll } from "../support/at-end.ts";
import { bytesOf } from "../support/bytes.ts";
import { password } from "../support/passwords.ts";
import { main } from "../support/program.ts";
import { refusal } from "../support/refusal.ts";
import { runToEnd, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const timeout = 360_000;
const data = bytesOf("message");
/** Connections of a test. With so many, one worker of three gets none once in 140,000 runs; then less is shown. */
const connections = 32;

/** Starts the program with three event loops. */
async function start(...args: string[]) {
  return startUntil(onTestFinished, ...args);
}

async function startUntil(atEnd: AtEnd, ...args: string[]) {
  const dataDir = makeTemporaryDirectory(atEnd);
  const server = await startServer({ dataDir, args: ["--workers", "3", ...args] });
  atEnd(async () => void (await server.stop("SIGKILL")));
  return { ...server, dataDir, ...connectTo(server.url) };
}

/** Clients of a server, each with a connection of its own, which the system gives to one of the event loops. */
function connectTo(url: string) {
  const connect = (token?: string) => {
    const sessionManager = new Http2SessionManager(url);
    onTestFinished(() => sessionManager.abort());
    const authorize: Interceptor = (next) => (req) => {
      if (token !== undefined) req.header.set("authorization", `Bearer ${token}`);
      return next(req);
    };
    const transport = createGrpcTransport({ baseUrl: url, sessionManager, interceptors: [authorize] });
    return {
      pqc: createClient(PqcService, transport),
      kms: createClient(KmsService, transport),
      vpn: createClient(VpnService, transport),
      tokens: createClient(TokenService, transport),
    };
  };
  const connectAll = (token?: string) => Array.from({ length: connections }, () => connect(token));
  return { connect, connectAll };
}

type Connected = ReturnType<ReturnType<typeof connectTo>["connect"]>;

async function readMetric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((one) => one.startsWith(name));
  return Number(line?.split(" ").at(-1));
}

/** Runs one operator's command on a store. */
async function _office(dataDir: string, ...words: string[]): Promise<void> {
  const { code, stderr } = await runToEnd([...words, "--data-dir", dataDir]);
  if (code !== 0) throw new Error(stderr);
}

describe("a server with three event loops", { timeout }, () => {
  /** For tests that look only at records of their own. */
  let server: Awaited<ReturnType<typeof start>>;
  const atEnd = endAfterAll();
  beforeAll(async () => {
    server = await startUntil(atEnd);
  }, timeout);

  it("spreads connections over all of them, and has one set of numbers", async () => {
    const clients = server.connectAll();
    await Promise.all(clients.map(({ pqc }) => pqc.signData({ data })));
    expect(await readMetric(server.url, 'qsp_calls_total{method="pqc.PqcService/SignData",code="OK"}')).toBe(
      connections,
    );
    expect(await readMetric(server.url, "qsp_event_loops ")).toBe(3);
    expect(threadsOf(server.process.pid)).toEqual(["worker 0", "worker 1", "worker 2"]);
  });

  it("counts the streams of a user on all of them", async () => {
    const server = await start(
      "--auth",
      "token",
      "--max-streams-per-user",
      "5",
      "--max-calls-per-second",
      "0",
    );
    const token = await logInAs(server, "ada");
    // Each stream that is open gets this key's entry.
    await server.connect(token).kms.createKey({});
    const watching = server.connectAll(token).slice(0, 20).map(watchUntilRefused);
    const refused = (await Promise.all(watching)).filter((one) => one !== undefined);
    expect(refused).toEqual(Array(15).fill({ code: "ResourceExhausted", reason: "CONCURRENCY_LIMITED" }));
  });

  it("counts the calls a second of a user on all of them", async () => {
    const server = await start("--auth", "token", "--max-calls-per-second", "10");
    const token = await logInAs(server, "ada");
    const clients = server.connectAll(token);
    const startedMs = performance.now();
    const outcomes = await Promise.all(clients.map(({ kms }) => refusalOrNot(kms.listKeys({}))));
    const mostBySeconds = Math.ceil(((performance.now() - startedMs) / 1000) * 10);
    const answered = outcomes.filter((one) => one === undefined).length;
    // Twice the rate at once, and one for each tenth of a second.
    expect(answered).toBeGreaterThanOrEqual(20);
    expect(answered).toBeLessThanOrEqual(20 + mostBySeconds);
  });

  it("counts failed log-ins on all of them", async () => {
    const server = await start("--auth", "token", "--max-failed-logins", "4");
    const failures = await Promise.all(
      server
        .connectAll()
        .slice(0, 12)
        .map(({ tokens }) => refusal(tokens.issueToken({ username: "ada", password: "wrong password" }))),
    );
    const reasons = failures.map(({ reason }) => reason);
    expect(reasons.filter((reason) => reason === "LOGIN_FAILED")).toHaveLength(4);
    expect(reasons.filter((reason) => reason === "LOGIN_LIMITED")).toHaveLength(8);
  });

  it("closes connections beyond their limit, whichever event loop they come to", async () => {
    const server = await start("--max-connections", "10");
    const outcomes = await Promise.all(
      server
        .connectAll()
        .slice(0, 30)
        .map(({ pqc }) => refusalOrNot(pqc.signData({ data }))),
    );
    expect(outcomes.filter((one) => one === undefined)).toHaveLength(10);
  });

  it("refuses a key on all of them once one has answered that it is destroyed", async () => {
    const clients = server.connectAll();
    const [first] = clients as [Connected];
    for (let times = 0; times < 5; times += 1) {
      const { keyId } = present((await first.kms.createKey({ algorithm: "ML-DSA-44" })).result);
      await Promise.all(clients.map(({ kms }) => kms.sign({ keyId, data })));
      await first.kms.destroyKey({ keyId });
      const outcomes = await Promise.all(clients.map(({ kms }) => refusal(kms.sign({ keyId, data }))));
      expect(new Set(outcomes.map(({ reason }) => reason))).toEqual(new Set(["KEY_STATE_INVALID"]));
    }
  });

  it("writes one audit log that is valid, and follows it on all of them", async () => {
    const server = await start();
    const clients = server.connectAll();
    const { keyId } = present((await clients[0]?.kms.createKey({ algorithm: "ML-DSA-44" }))?.result);
    const watchers = clients.slice(0, 6).map(({ kms }) => follow(kms, 1 + connections));
    await Promise.all(clients.map(({ kms }) => kms.sign({ keyId, data })));
    const sequences = Array.from({ length: 1 + connections }, (_, i) => i + 1);
    expect(await Promise.all(watchers)).toEqual(Array(6).fill(sequences));
    expect(await clients[1]?.kms.verifyAuditLog({})).toMatchObject({ valid: true });
  });

  it("answers the calls of a tunnel on whichever event loop they come to", async () => {
    const clients = server.connectAll();
    const peer = await connectPeer((clients[0] as Connected).vpn);
    for (const { vpn } of clients) {
      const { packet } = await vpn.sendPacket({ tunnelId: peer.tunnelId, data });
      expect(openAsPeer(peer.sessionKey, packet)).toEqual(data);
    }
    const { tunnels } = await (clients[1] as Connected).vpn.listTunnels({});
    expect(tunnels).toMatchObject([{ sessionStatus: "ESTABLISHED", packetCount: connections }]);
  });

  it("lets running calls finish when it is told to stop, and ends with 0", async () => {
    const server = await start();
    const running = server
      .connectAll()
      .slice(0, 3)
      .map(({ pqc }) => pqc.signData({ data, algorithm: "SLH-DSA-SHA2-128s" }));
    for (const call of running) call.catch(() => {});
    await vi.waitUntil(
      async () => (await readMetric(server.url, 'qsp_calls_running{method="pqc.PqcService/SignData"}')) > 0,
      { timeout: 120_000 },
    );
    const stopped = server.stop();
    const ended = await Promise.allSettled(running);
    const { code, stderr } = await stopped;
    expect(code).toBe(0);
    expect(ended.some(({ status }) => status === "fulfilled")).toBe(true);
    expect(stderr).not.toMatch(/"level":[56]0/);
  });

  it("shares its port with no other server, even if both start at the same moment", async () => {
    const port = String(await findPort(0, "127.0.0.1"));
    const runs = [1, 2].map(() => {
      const child = spawn(process.execPath, [
        ...[main, "serve", "--port", port, "--workers", "2"],
        ...["--data-dir", makeTemporaryDirectory()],
      ]);
      onTestFinished(() => void child.kill("SIGKILL"));
      const ready = new Promise<string>((resolve) => {
        child.stdout.on("data", (chunk) => {
          if (String(chunk).includes("is ready on")) resolve("ready");
        });
      });
      const ended = once(child, "exit").then(([code]) => `ended with ${code}`);
      return Promise.race([ready, ended]);
    });
    expect((await Promise.all(runs)).sort()).toEqual(["ended with 4", "ready"]);
  });

  it("does not share its port with another server", async () => {
    const { port } = new URL(server.url);
    const args = ["serve", "--port", port, "--workers", "2", "--data-dir", makeTemporaryDirectory()];
    expect(await runToEnd(args)).toMatchObject({
      code: 4,
      stderr: `qsp: port ${port} of 127.0.0.1 is in use; choose another port with --port\n`,
    });
  });

  it("explains in one sentence why it cannot start", async () => {
    const directory = makeTemporaryDirectory();
    const keys = ["--tls-cert", "/no/such/file", "--tls-key", "/no/such/file"];
    const { code, stderr } = await runToEnd([
      "serve",
      "--workers",
      "3",
      "--port",
      "0",
      "--data-dir",
      directory,
      ...keys,
    ]);
    expect({ code, lines: stderr.split("\n").length }).toEqual({ code: 2, lines: 2 });
    expect(stderr).toMatch(/^qsp: .*no\/such\/file/);
  });
});

describe("an event loop that dies", { timeout }, () => {
  async function supervise(workers: number, clock?: SupervisorClock) {
    const dataDir = makeTemporaryDirectory();
    const config = readConfig(
      [
        "--port",
        "0",
        "--data-dir",
        dataDir,
        "--services",
        "kms,vpn",
        "--log-level",
        "silent",
        "--max-drain-ms",
        "100",
        // A machine that is busy with other tests must not make the server refuse calls.
        "--max-queue-ms",
        "60000",
      ],
      {},
    );
    const logger = pino({ level: "silent" });
    const options = { config, logger, workers, onOpen: () => {} };
    const supervisor = new Supervisor(options, await findPort(0, "127.0.0.1"), clock);
    const server = await supervisor.start();
    onTestFinished(() => server.close());
    const url = `http://127.0.0.1:${server.address.port}`;
    return { supervisor, server, url, ...connectTo(url) };
  }

  it("is replaced; its calls end with UNAVAILABLE, and nothing that was acknowledged is lost", async () => {
    const { supervisor, url, connect } = await supervise(2);
    const { keyId } = present((await connect().kms.createKey({ algorithm: "ML-DSA-44" })).result);
    let acknowledged = 0;
    let isOver = false;
    const failures: string[] = [];
    const signing = Array.from({ length: connections }, async () => {
      const sign = signWithGrpcJs(url, keyId);
      while (!isOver) {
        const code = await sign();
        if (code === status.OK) acknowledged += 1;
        else failures.push(status[code]);
        // A client whose connection is closed may refuse at once, again and again.
        await setImmediate();
      }
    });
    for (let deaths = 1; deaths <= 3; deaths += 1) {
      const before = acknowledged;
      await vi.waitUntil(() => acknowledged > before + 100, { timeout });
      await fail(supervisor, 1);
    }
    const before = acknowledged;
    await vi.waitUntil(() => acknowledged > before + 100, { timeout });
    isOver = true;
    await Promise.all(signing);
    expect(failures.filter((name) => name !== "UNAVAILABLE")).toEqual([]);
    const { kms } = connect();
    expect((await kms.verifyAuditLog({})).valid).toBe(true);
    const { totalSize } = await kms.getAuditLog({ pageSize: 1 });
    expect(totalSize).toBeGreaterThanOrEqual(1 + acknowledged);
  });

  it("leaves tunnels reachable, and counters that do not go down", async () => {
    const { supervisor, url, connectAll } = await supervise(3);
    const peer = await connectPeer((connectAll()[0] as Connected).vpn);
    const send = async () => {
      for (const { vpn } of connectAll()) await vpn.sendPacket({ tunnelId: peer.tunnelId, data });
    };
    const sent = 'qsp_calls_total{method="vpn.VpnService/SendPacket",code="OK"}';
    await send();
    await fail(supervisor, 2);
    await vi.waitUntil(() => readMetric(url, sent).then((count) => count === connections), { timeout });
    await send();
    expect(await readMetric(url, sent)).toBe(2 * connections);
  });

  it("is replaced if it stands still", async () => {
    const { supervisor, url } = await supervise(2, { pollIntervalMs: 100 });
    const thread = present(supervisor.threadOf(1));
    const ended = once(thread, "exit");
    thread.postMessage({ kind: "hang" } satisfies ToWorker);
    await ended;
    await vi.waitUntil(() => supervisor.threadOf(1) !== undefined, { timeout });
    await vi.waitUntil(() => readMetric(url, "qsp_event_loops ").then((loops) => loops === 2), { timeout });
  });

  it("does not keep a server from stopping if it stands still", async () => {
    const { supervisor, server } = await supervise(2);
    supervisor.threadOf(1)?.postMessage({ kind: "hang" } satisfies ToWorker);
    await server.close();
    expect(supervisor.threadOf(0)).toBeUndefined();
    expect(supervisor.threadOf(1)).toBeUndefined();
  });

  it("ends the server if it happens again and again", async () => {
    // On a busy machine, six deaths take longer than a minute.
    const { supervisor, server } = await supervise(2, { nowMs: () => 0 });
    const { promise: failed, resolve } = Promise.withResolvers<void>();
    server.onFailure(() => resolve());
    // The supervisor replaces it five times within a minute.
    for (let deaths = 1; deaths <= 6; deaths += 1) await fail(supervisor, 1);
    await failed;
  });
});

describe("--workers", () => {
  const workersOf = (value: string, platform: NodeJS.Platform) =>
    countWorkers(readConfig(["--workers", value], {}), platform);

  it("is a number, or half of the cores for auto", () => {
    expect(workersOf("3", "linux")).toBe(3);
    expect(workersOf("auto", "linux")).toBeGreaterThanOrEqual(1);
    expect(workersOf("auto", "linux")).toBeLessThanOrEqual(8);
  });

  it("is 1 where the system cannot share a port", () => {
    expect(workersOf("auto", "darwin")).toBe(1);
    expect(() => workersOf("2", "darwin")).toThrow("only on Linux");
  });

  it.each(["0", "65", "1.5", "many", ""])("refuses %j", (value) => {
    expect(() => readConfig([`--workers=${value}`], {})).toThrow("from 1 to 64");
  });
});

/** The names of the threads of workers, sorted. */
function threadsOf(pid: number | undefined): string[] {
  const folder = `/proc/${pid}/task`;
  const names = readdirSync(folder).map((thread) => readFileSync(`${folder}/${thread}/comm`, "utf8").trim());
  return names.filter((name) => name.startsWith("worker ")).sort();
}

/** Has a worker fail, and waits until its thread has ended. */
async function fail(supervisor: Supervisor, worker: number): Promise<void> {
  const thread = await vi.waitUntil(() => supervisor.threadOf(worker), { timeout });
  const ended = once(thread, "exit");
  thread.postMessage({ kind: "fail" } satisfies ToWorker);
  await ended;
}

async function logInAs(server: Awaited<ReturnType<typeof start>>, name: string): Promise<string> {
  const words = [main, "user", "add", name, "admin", "--data-dir", server.dataDir];
  const { status, stderr } = spawnSync(process.execPath, words, { input: password, encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  const { token } = await server.connect().tokens.issueToken({ username: name, password });
  return token;
}

/**
 * Signs over a connection of @grpc/grpc-js, which knows what a server means that closes one. Connect's client throws
 * where nothing can catch it (connect-node 2.1, http2-session-manager.js, onGoaway).
 */
function signWithGrpcJs(url: string, keyId: string): () => Promise<status> {
  const options = { "grpc.use_local_subchannel_pool": 1 };
  const client = new GrpcJsClient(new URL(url).host, credentials.createInsecure(), options);
  onTestFinished(() => client.close());
  const request = Buffer.from(toBinary(SignRequestSchema, create(SignRequestSchema, { keyId, data })));
  const itself = (bytes: Buffer): Buffer => bytes;
  return () =>
    new Promise((resolve) => {
      client.makeUnaryRequest("/kms.KmsService/Sign", itself, itself, request, (error) =>
        resolve(error === null ? status.OK : error.code),
      );
    });
}

function refusalOrNot(call: Promise<unknown>): Promise<Awaited<ReturnType<typeof refusal>> | undefined> {
  return call.then(
    () => undefined,
    (error: unknown) => refusal(Promise.reject(error)),
  );
}

/** Watches the audit log. @returns the refusal, or undefined if an entry came; then the stream stays open */
async function watchUntilRefused({ kms }: Connected) {
  const call = new AbortController();
  onTestFinished(() => call.abort());
  const entries = kms.watchAuditLog({ afterSequence: 0 }, { signal: call.signal });
  return refusalOrNot(entries[Symbol.asyncIterator]().next());
}

/** Follows the audit log from its start. @returns the sequences of so many entries */
async function follow(kms: Client<typeof KmsService>, count: number): Promise<number[]> {
  const sequences: number[] = [];
  for await (const { entry } of kms.watchAuditLog({ afterSequence: 0 })) {
    sequences.push(present(entry).sequence);
    if (sequences.length === count) break;
  }
  return sequences;
}
