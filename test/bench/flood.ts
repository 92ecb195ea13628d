/**
 * Makes calls at a steady rate, whatever becomes of those before: `node flood.ts '<FloodInput as JSON>'`. Prints a
 * FloodResult as JSON.
 */
import http2 from "node:http2";

/** What to do. */
export interface FloodInput {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The message with its 5-byte prefix, in base64. */
  readonly body: string;
  readonly callsPerSecond: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** What came of it, of calls that were begun in the time that was measured. */
export interface FloodResult {
  /** Calls by the status of gRPC, a second. */
  readonly byStatus: Readonly<Record<string, number>>;
  readonly answered: Times;
  readonly refused: Times;
}

/** Milliseconds of a call. */
interface Times {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const sessionCount = 16;
/** Calls are made so often, as many as are due. */
const tickMs = 5;
/** RESOURCE_EXHAUSTED. */
const refusedStatus = "8";

async function run(order: FloodInput): Promise<FloodResult> {
  const body = Buffer.from(order.body, "base64");
  const headers = { ":method": "POST", ":path": order.path, ...order.headers };
  const sessions = Array.from({ length: sessionCount }, () => http2.connect(order.url));
  const durations = new Map<string, number[]>();
  const startMs = performance.now();
  const measureFromMs = startMs + order.warmUpMs;
  const endMs = measureFromMs + order.measureMs;

  const callOnce = (index: number): Promise<void> =>
    new Promise((resolve) => {
      const calledMs = performance.now();
      let status = "none";
      const stream = (sessions[index % sessionCount] as http2.ClientHttp2Session).request(headers);
      const read = (answer: http2.IncomingHttpHeaders): void => {
        status = answer["grpc-status"]?.toString() ?? status;
      };
      stream.on("response", read);
      stream.on("trailers", read);
      stream.on("error", () => {});
      stream.on("close", () => {
        if (calledMs >= measureFromMs) {
          const times = durations.get(status) ?? [];
          durations.set(status, times);
          times.push(performance.now() - calledMs);
        }
        resolve();
      });
      stream.resume();
      stream.end(body);
    });

  const calls: Promise<void>[] = [];
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const nowMs = Math.min(performance.now(), endMs);
      const due = ((nowMs - startMs) / 1000) * order.callsPerSecond;
      while (calls.length < due) calls.push(callOnce(calls.length));
      if (nowMs < endMs) return;
      clearInterval(timer);
      resolve();
    }, tickMs);
  });
  await Promise.all(calls);
  for (const session of sessions) session.close();

  const seconds = order.measureMs / 1000;
  return {
    byStatus: Object.fromEntries([...durations].map(([status, { length }]) => [status, length / seconds])),
    answered: timesOf(durations.get("0")),
    refused: timesOf(durations.get(refusedStatus)),
  };
}

function timesOf(durations: number[] = []): Times {
  durations.sort((a, b) => a - b);
  const at = (part: number): number =>
    durations[Math.min(durations.length - 1, Math.floor(durations.length * part))] ?? 0;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}

process.stdout.write(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "{}") as FloodInput)));
