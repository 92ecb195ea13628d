/**
 * What clients send to scripted exchanges: requests whose bodies are complete, truncated, or of a different length than
 * announced. The path says which body is complete.
 */
import {
  flags,
  frameTypes,
  preface,
  writeFields,
  writeFrame,
  writeSettings,
  writeUint32,
} from "../support/http2-frames.ts";
import { bodyByte } from "./exchange-server.ts";
import type { Step } from "./fuzz-run.ts";
import type { Random } from "./mutations.ts";

const sizes = [0, 1, 10, 1000, 20_000, 100_000];

function makePath(random: Random, whole: number | undefined): string {
  return `/script/${random.below(2 ** 31)}/${whole ?? "cut"}`;
}

/** Makes the sequence for one HTTP/1.1 connection. */
export function makeHttp1Exchanges(random: Random): Step[] {
  const bytes: Buffer[] = [];
  for (let count = random.pick([1, 1, 2, 3, 8]); count > 0; count -= 1) {
    const { whole, framing, body, isLast } = makeHttp1Body(random);
    const lines = [
      `${random.pick(["POST", "POST", "POST", "PUT", "GET", "HEAD"])} ${makePath(random, whole)} HTTP/1.1`,
      "host: localhost",
      ...framing,
      ...(random.below(4) === 0 ? ["expect: 100-continue"] : []),
      ...(random.below(10) === 0 ? ["connection: close"] : []),
    ];
    bytes.push(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), body);
    if (isLast) break;
  }
  return sendAndLeave(random, bytes);
}

interface Http1Body {
  /** The bytes that complete the body; undefined if it stays incomplete. */
  readonly whole: number | undefined;
  readonly framing: readonly string[];
  readonly body: Buffer;
  /** Whether further bytes would belong to the body. */
  readonly isLast: boolean;
}

function makeHttp1Body(random: Random): Http1Body {
  const size = random.pick(sizes);
  const body = Buffer.alloc(size, bodyByte);
  const more = 1 + random.below(1000);
  const chunks = Array.from({ length: random.below(5) }, () =>
    Buffer.alloc(random.pick([1, 100, 5000]), bodyByte),
  );
  const chunked = Buffer.concat(
    chunks.flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]),
  );
  const coding = ["transfer-encoding: chunked"];
  switch (random.below(8)) {
    case 0:
      return { whole: 0, framing: [], body: Buffer.alloc(0), isLast: false };
    case 1:
      return { whole: undefined, framing: [`content-length: ${size + more}`], body, isLast: true };
    case 2: {
      const whole = random.below(size + 1);
      return { whole, framing: [`content-length: ${whole}`], body, isLast: false };
    }
    case 3:
      return { whole: undefined, framing: coding, body: chunked, isLast: true };
    case 4:
    case 5: {
      const whole = chunks.reduce((sum, { length }) => sum + length, 0);
      return {
        whole,
        framing: coding,
        body: Buffer.concat([chunked, Buffer.from("0\r\n\r\n")]),
        isLast: false,
      };
    }
    default:
      return { whole: size, framing: [`content-length: ${size}`], body, isLast: false };
  }
}

/** Makes the sequence for one HTTP/2 connection. */
export function makeHttp2Exchanges(random: Random): Step[] {
  const window = random.pick([[], [], [[4, 0]], [[4, 100]], [[4, 1_000_000]]] as const);
  const bytes = [preface, writeFrame(frameTypes.settings, 0, 0, writeSettings(window))];
  if (random.below(2) === 0)
    bytes.push(writeFrame(frameTypes.windowUpdate, 0, 0, writeUint32(random.pick([1, 10_000, 10_000_000]))));
  const streams = Array.from({ length: random.pick([1, 1, 2, 3, 6, 12]) }, (_, index) =>
    makeHttp2Stream(random, 2 * index + 1),
  );
  // HEADERS come in the order of their streams; the frames after them are interleaved.
  let opened = 0;
  for (;;) {
    const open = streams.slice(0, opened + 1).filter((frames) => frames.length > 0);
    if (open.length === 0) break;
    const frames = random.pick(open);
    if (frames === streams[opened]) opened += 1;
    bytes.push(frames.shift() ?? Buffer.alloc(0));
  }
  return sendAndLeave(random, bytes);
}

function makeHttp2Stream(random: Random, id: number): Buffer[] {
  const size = random.pick(sizes);
  const end = random.pick(["data", "data", "data", "empty", "trailers", "head", "none", "reset", "reset"]);
  const sent = end === "head" ? 0 : size;
  const length = random.pick([
    undefined,
    undefined,
    sent,
    sent,
    sent + 1 + random.below(100),
    random.below(size + 1),
  ]);
  const isTrue = length === undefined || length === sent;
  const whole = isTrue && end !== "none" && end !== "reset" ? sent : undefined;
  const fields: (readonly [string, string])[] = [
    [":method", random.pick(["POST", "POST", "POST", "PUT", "GET", "HEAD"])],
    [":path", makePath(random, whole)],
    [":scheme", "http"],
    [":authority", "localhost"],
    ...(length === undefined ? [] : [["content-length", String(length)] as const]),
    ...(random.below(4) === 0 ? [["expect", "100-continue"] as const] : []),
  ];
  const headFlags = flags.endHeaders | (end === "head" ? flags.endStream : 0);
  const frames = [writeFrame(frameTypes.headers, headFlags, id, writeFields(fields))];
  for (let at = 0; at < sent; ) {
    const to = Math.min(sent, at + random.pick([1000, 16_000, 16_000]));
    const isEnd = to === sent && end === "data";
    frames.push(
      writeFrame(frameTypes.data, isEnd ? flags.endStream : 0, id, Buffer.alloc(to - at, bodyByte)),
    );
    at = to;
  }
  if (end === "empty" || (end === "data" && sent === 0))
    frames.push(writeFrame(frameTypes.data, flags.endStream, id, Buffer.alloc(0)));
  if (end === "trailers")
    frames.push(
      writeFrame(frameTypes.headers, flags.endStream | flags.endHeaders, id, writeFields([["x-t", "1"]])),
    );
  for (let count = random.below(3); count > 0; count -= 1) {
    const update = writeFrame(frameTypes.windowUpdate, 0, id, writeUint32(random.pick([1, 1000, 1_000_000])));
    frames.splice(1 + random.below(frames.length), 0, update);
  }
  const reset = (): Buffer => writeFrame(frameTypes.rstStream, 0, id, writeUint32(random.below(15)));
  if (end === "reset") {
    // Nothing may follow it.
    frames.splice(1 + random.below(frames.length));
    frames.push(reset());
  } else if (end !== "none" && random.below(4) === 0) frames.push(reset());
  return frames;
}

/** Sends bytes in segments of any size, pauses sending and reading in between, and disconnects. */
function sendAndLeave(random: Random, parts: readonly Buffer[]): Step[] {
  const all = Buffer.concat(parts);
  const bytes = random.below(5) === 0 ? all.subarray(0, random.below(all.length + 1)) : all;
  const cuts = Array.from({ length: random.pick([0, 1, 3, 8]) }, () => random.below(bytes.length + 1));
  const steps: Step[] = [];
  let at = 0;
  for (const end of [...cuts.sort((one, other) => one - other), bytes.length]) {
    steps.push({ do: "send", bytes: bytes.subarray(at, end) });
    steps.push({ do: random.pick(["turn", "turn", "turn", "wait", "stop reading", "read on"]) });
    at = end;
  }
  for (let count = random.below(4); count > 0; count -= 1)
    steps.push({ do: random.pick(["turn", "wait", "wait", "stop reading", "read on"]) });
  steps.push({ do: random.pick(["end", "end", "close", "reset"]) });
  return steps;
}
