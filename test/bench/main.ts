/**
 * Measures what the server adds to what it serves: `npm run bench [-- <seconds a measurement>]`.
 *
 * Everything is compared with something else in the same run, since absolute times depend on the machine:
 * the figures to read are the ratios. Each pair is measured in turn, several times, and the medians compared.
 */
import { type ChildProcess, execFile, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { SignDataRequestSchema, VerifySignatureRequestSchema } from "#gen/pqc/pqc_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { LoadOrder, LoadResult } from "./load.ts";

const measureMs = Number(process.argv[2] ?? 4) * 1000;
const rounds = 3;
const inFlight = 64;
const here = import.meta.dirname;
const run = promisify(execFile);

/** A server in a process of its own. */
interface Child {
  readonly url: string;
  ask(message: string): Promise<{ p99Ms: number; rssBytes: number }>;
  tell(message: string): void;
}

async function start(script: string, ...args: string[]): Promise<Child> {
  // As npm start does: one-time keys die young, and V8 does not see how much native memory each one holds.
  const execArgv = ["--max-semi-space-size=64"];
  const child: ChildProcess = fork(join(here, script), args, { stdio: "inherit", execArgv });
  const next = <T>(): Promise<T> =>
    new Promise((resolve, reject) => {
      child.once("message", (message) => resolve(message as T));
      child.once("exit", (code) => reject(new Error(`${script} ended with ${code}`)));
    });
  const { port } = await next<{ port: number }>();
  return {
    url: `http://127.0.0.1:${port}`,
    ask: (message) => {
      child.send(message);
      return next();
    },
    tell: (message) => void child.send(message),
  };
}

async function load(url: string, order: Partial<LoadOrder>): Promise<LoadResult> {
  const whole = { url, method: "POST", headers: {}, body: "", inFlight, warmUpMs: 1000, measureMs, ...order };
  const { stdout } = await run(process.execPath, [join(here, "load.ts"), JSON.stringify(whole)]);
  return JSON.parse(stdout) as LoadResult;
}

function grpc(path: string, message: Uint8Array): Partial<LoadOrder> {
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return {
    path,
    headers: { "content-type": "application/grpc", te: "trailers" },
    body: frame.toString("base64"),
  };
}

function json(path: string, text: string): Partial<LoadOrder> {
  return {
    path,
    headers: { "content-type": "application/json" },
    body: Buffer.from(text).toString("base64"),
  };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** Measures two things in turn, and says what part of the second the first reaches. */
async function compare(
  title: string,
  target: string,
  first: () => Promise<number>,
  second: () => Promise<number>,
): Promise<void> {
  const [a, b]: [number[], number[]] = [[], []];
  for (let round = 1; round <= rounds; round += 1) {
    process.stderr.write(`\r${title}: round ${round} of ${rounds} `);
    a.push(await first());
    b.push(await second());
  }
  process.stderr.write("\r\x1b[K");
  const ratio = median(a) / median(b);
  console.log(
    `${title}: ${ratio.toFixed(2)} (${target}); ${median(a).toFixed(0)} against ${median(b).toFixed(0)} a second`,
  );
}

const dataDir = mkdtempSync(join(os.tmpdir(), "qsp-bench-"));
const app = await start("app-server.ts", dataDir);
const grpcJs = await start("grpc-js-server.ts");
try {
  console.log(
    `Node ${process.version}, ${os.availableParallelism()} cores, ${inFlight} calls in flight, load on the same machine`,
  );
  const rest = await app.ask("report");
  const signRequest = grpc(
    "/pqc.PqcService/SignData",
    toBinary(SignDataRequestSchema, create(SignDataRequestSchema, { data: Buffer.alloc(32, 1) })),
  );
  await compare(
    "SignData over gRPC against the provider's key pair and signature",
    "reach 0.75",
    async () => {
      app.tell("reset");
      return (await load(app.url, signRequest)).callsPerSecond;
    },
    async () => {
      const args = [join(here, "raw-provider.ts"), String(inFlight), String(measureMs)];
      return (JSON.parse((await run(process.execPath, args)).stdout) as { callsPerSecond: number })
        .callsPerSecond;
    },
  );
  app.tell("reset");
  const signing = await load(app.url, signRequest);
  const busy = await app.ask("report");
  console.log(`  one call of these: p50 ${signing.p50Ms.toFixed(1)} ms, p99 ${signing.p99Ms.toFixed(1)} ms`);
  console.log(`  event loop late under that load: p99 ${busy.p99Ms.toFixed(1)} ms`);
  console.log(`  memory: ${toMiB(rest.rssBytes)} MiB at rest, ${toMiB(busy.rssBytes)} MiB under load`);

  const verifyRequest = await createVerifyRequest();
  await compare(
    "VerifySignature over REST against Connect JSON",
    "reach 0.85",
    async () => (await load(app.url, json("/api/grpc/verify", verifyRequest))).callsPerSecond,
    async () => (await load(app.url, json("/pqc.PqcService/VerifySignature", verifyRequest))).callsPerSecond,
  );
  await compare(
    "Hello over REST against Connect JSON",
    "no target",
    async () => (await load(app.url, { path: "/api/hello", method: "GET" })).callsPerSecond,
    async () => (await load(app.url, json("/pqc.TokenService/Hello", "{}"))).callsPerSecond,
  );
  const check = grpc("/grpc.health.v1.Health/Check", new Uint8Array());
  await compare(
    "Health.Check over gRPC against @grpc/grpc-js",
    "reach 0.5",
    async () => (await load(app.url, check)).callsPerSecond,
    async () => (await load(grpcJs.url, check)).callsPerSecond,
  );
  console.log(`  memory at the end: ${toMiB((await app.ask("report")).rssBytes)} MiB`);
} finally {
  app.tell("stop");
  grpcJs.tell("stop");
  rmSync(dataDir, { recursive: true, force: true });
}

function toMiB(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}

async function createVerifyRequest(): Promise<string> {
  const provider = await createCryptoProvider("openssl");
  const data = Buffer.alloc(32, 1);
  const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-65");
  const signature = await provider.sign(secretKey, data);
  const request = create(VerifySignatureRequestSchema, { data, signature, publicKey: publicKey.exportRaw() });
  return toJsonString(VerifySignatureRequestSchema, request);
}
