/** CPU cost of idle watchers: watches of the audit log over gRPC that have nothing to send. */
import { once } from "node:events";
import http2 from "node:http2";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { report, showProgress } from "./results.ts";
import { begin, readCpuSeconds, stop } from "./start.ts";
import { post } from "./tools.ts";

const watchers = 5000;
const streamsPerConnection = 100;
const seconds = 10;

export async function measureWatchers(dataDir: string): Promise<void> {
  const { child, url } = await begin(join(dataDir, "watchers"), "--services", "kms");
  showProgress(`opening ${watchers} watches`);
  const sessions: http2.ClientHttp2Session[] = [];
  const entries: Promise<void>[] = [];
  for (let opened = 0; opened < watchers; opened += streamsPerConnection) {
    const session = http2.connect(url);
    await once(session, "connect");
    sessions.push(session);
    for (let i = 0; i < streamsPerConnection; i += 1) entries.push(watch(session));
  }
  // A watch does not report when it has begun. All have begun once they have received a log entry.
  const timer = setInterval(() => void post({ url }, "/api/kms/create-key", {}).catch(() => {}), 1000);
  await Promise.all(entries);
  clearInterval(timer);
  await wait(5000);
  const before = readCpuSeconds(child);
  await wait(seconds * 1000);
  const share = (readCpuSeconds(child) - before) / seconds;
  for (const session of sessions) session.destroy();
  await stop(child);
  showProgress();
  report(`CPU of ${watchers.toLocaleString("en")} idle watchers`, [100 * share], { unit: "% of a core" });
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
