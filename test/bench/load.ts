/**
 * Calls one address as fast as it answers, from a separate process: `node load.ts '<LoadInput as JSON>'`.
 * Prints a LoadResult as JSON. Writes HTTP/2 frames itself, so that the load generator takes as little CPU as
 * possible.
 */
import http2 from "node:http2";
import { percentile } from "./results.ts";

/** The calls to make. */
export interface LoadInput {
  readonly url: string;
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  /** Request body in base64; for gRPC with its 5-byte prefix. */
  readonly body: string;
  readonly inFlight: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** The measurement. */
export interface LoadResult {
  readonly calls: number;
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const sessionCount = 4;

async function run(order: LoadInput): Promise<LoadResult> {
  const body = Buffer.from(order.body, "base64");
  const headers = { ":method": order.method, ":path": order.path, ...order.headers };
  const durations: number[] = [];
  const startMs = performance.now();
  const measureFromMs = startMs + order.warmUpMs;
  const endMs = measureFromMs + order.measureMs;
  const sessions = Array.from({ length: sessionCount }, () => http2.connect(order.url));

  const callOnce = (session: http2.ClientHttp2Session): Promise<void> =>
    new Promise((resolve, reject) => {
      const calledMs = performance.now();
      const stream = session.request(headers, { endStream: body.length === 0 });
      let status: string | number | undefined;
      let grpcStatus: string | undefined;
      stream.on("response", (answer) => {
        status = answer[":status"];
        grpcStatus = answer["grpc-status"]?.toString();
      });
      stream.on("trailers", (trailers) => {
        grpcStatus = trailers["grpc-status"]?.toString() ?? grpcStatus;
      });
      stream.on("error", reject);
      stream.on("close", () => {
        if (status !== 200 || (grpcStatus !== undefined && grpcStatus !== "0")) {
          reject(new Error(`${order.path} answered ${status}, grpc-status ${grpcStatus}`));
          return;
        }
        const nowMs = performance.now();
        if (calledMs >= measureFromMs && nowMs <= endMs) durations.push(nowMs - calledMs);
        resolve();
      });
      stream.resume();
      if (body.length > 0) stream.end(body);
    });

  const worker = async (index: number): Promise<void> => {
    const session = sessions[index % sessionCount] as http2.ClientHttp2Session;
    while (performance.now() < endMs) await callOnce(session);
  };
  await Promise.all(Array.from({ length: order.inFlight }, (_, index) => worker(index)));
  for (const session of sessions) session.close();

  return {
    calls: durations.length,
    callsPerSecond: durations.length / (order.measureMs / 1000),
    p50Ms: percentile(durations, 0.5),
    p99Ms: percentile(durations, 0.99),
  };
}

process.stdout.write(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "{}") as LoadInput)));
