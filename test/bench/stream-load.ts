/**
 * Keeps a bidirectional gRPC stream busy, from a separate process: `node stream-load.ts '<StreamInput as JSON>'`.
 * Prints the answers per second as JSON.
 */
import { once } from "node:events";
import http2 from "node:http2";

/** The stream to keep busy. */
export interface StreamInput {
  readonly url: string;
  readonly path: string;
  /** The message to send repeatedly, in base64, with its 5-byte prefix. */
  readonly frame: string;
  /** Messages in flight. */
  readonly inFlight: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

async function run(order: StreamInput): Promise<{ answersPerSecond: number }> {
  const frame = Buffer.from(order.frame, "base64");
  const measureFromMs = performance.now() + order.warmUpMs;
  const endMs = measureFromMs + order.measureMs;
  let answers = 0;
  const session = http2.connect(order.url);
  const headers = { "content-type": "application/grpc", te: "trailers" };
  const stream = session.request({ ":method": "POST", ":path": order.path, ...headers });
  let status = "none";
  stream.on("trailers", (trailers) => {
    status = String(trailers["grpc-status"]);
  });
  const send = (count: number): void => {
    for (let i = 0; i < count; i += 1) stream.write(frame);
  };
  const count = createFrameCounter();
  send(order.inFlight);
  stream.on("data", (chunk: Buffer) => {
    const arrived = count(chunk);
    const nowMs = performance.now();
    if (nowMs >= endMs) return void stream.end();
    if (nowMs >= measureFromMs) answers += arrived;
    send(arrived);
  });
  await once(stream, "close");
  session.close();
  if (status !== "0") throw new Error(`${order.path} ended with grpc-status ${status}`);
  return { answersPerSecond: answers / (order.measureMs / 1000) };
}

/** Counts the messages that end in each chunk of a stream. */
function createFrameCounter(): (chunk: Buffer) => number {
  const prefix = Buffer.alloc(5);
  let prefixBytes = 0;
  let left = 0;
  return (chunk) => {
    let ended = 0;
    for (let at = 0; at < chunk.length; ) {
      if (left > 0) {
        const taken = Math.min(left, chunk.length - at);
        left -= taken;
        at += taken;
        if (left === 0) ended += 1;
        continue;
      }
      prefix[prefixBytes] = chunk[at] as number;
      prefixBytes += 1;
      at += 1;
      if (prefixBytes < prefix.length) continue;
      prefixBytes = 0;
      left = prefix.readUInt32BE(1);
      if (left === 0) ended += 1;
    }
    return ended;
  };
}

process.stdout.write(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "{}") as StreamInput)));
