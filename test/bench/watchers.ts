/**
 * CPU cost of idle watchers: opens COUNT watches of the audit log over gRPC and prints the CPU time that the server
 * uses in ten seconds. `node test/bench/watchers.ts [COUNT] [PROGRAM]`
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { main } from "../support/program.ts";

const count = Number(process.argv[2] ?? 5000);
const program = process.argv[3] ?? main;
const streamsPerConnection = 100;
const seconds = 10;
const headers = { "content-type": "application/json" };

const dataDir = mkdtempSync(join(tmpdir(), "watchers-"));
const flags = ["serve", "--port", "0", "--data-dir", dataDir, "--services", "kms"];
const server = spawn(process.execPath, [program, ...flags], { stdio: ["ignore", "pipe", "pipe"] });
try {
  const url = await readUrl();
  const entries: Promise<void>[] = [];
  for (let opened = 0; opened < count; opened += streamsPerConnection) {
    const session = http2.connect(url);
    await once(session, "connect");
    for (let i = 0; i < Math.min(streamsPerConnection, count - opened); i += 1) entries.push(watch(session));
  }
  // A watch does not report when it has begun. All have begun once they have received a log entry.
  const makeEntry = () => fetch(`${url}/api/kms/create-key`, { method: "POST", headers, body: "{}" });
  const timer = setInterval(() => void makeEntry().catch(() => {}), 1000);
  await Promise.all(entries);
  clearInterval(timer);
  await wait(5000);
  const before = cpuSeconds();
  await wait(seconds * 1000);
  const used = cpuSeconds() - before;
  console.log(`${count} idle watchers: ${used.toFixed(2)} s of CPU in ${seconds} s`);
} finally {
  server.kill("SIGKILL");
  rmSync(dataDir, { recursive: true, force: true });
}
process.exit();

async function readUrl(): Promise<string> {
  for (const output of [server.stderr, server.stdout]) output.on("error", () => {});
  server.stderr.resume();
  for await (const line of createInterface(server.stdout)) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
    if (url !== undefined) return url;
  }
  throw new Error("the server does not listen");
}

/** Opens a watch and waits for its first entry. */
function watch(session: http2.ClientHttp2Session): Promise<void> {
  const stream = session.request({
    ":method": "POST",
    ":path": "/kms.KmsService/WatchAuditLog",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.end(Buffer.alloc(5));
  return new Promise((resolve, reject) => {
    stream.on("data", () => resolve());
    stream.on("close", () => reject(new Error("the server ended a watch")));
    stream.on("error", reject);
  });
}

/** User and system time of the server (proc(5)), in seconds. */
function cpuSeconds(): number {
  const fields = readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  const ticksPerSecond = 100;
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
