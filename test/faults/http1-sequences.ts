/** What an HTTP/1.1 client without a library sends: pipelined requests, complete and broken, before it disconnects. */
import { type Api, type FuzzRequest, makeRequest } from "./fuzz-requests.ts";
import type { Step } from "./fuzz-run.ts";
import { mutate, type Random } from "./mutations.ts";

/** Makes the sequence for one connection. */
export function makeHttp1Sequence(random: Random, api: Api): Step[] {
  const requests = Array.from({ length: random.pick([1, 1, 2, 2, 3, 5]) }, () => {
    const bytes = writeRequest(random, makeRequest(random, api));
    return random.below(10) === 0 ? mutate(random, bytes) : bytes;
  });
  const steps: Step[] = [];
  for (const bytes of random.below(3) === 0 ? [Buffer.concat(requests)] : requests) {
    const end = random.below(6) === 0 ? random.below(bytes.length + 1) : bytes.length;
    steps.push(...sendInPieces(random, bytes.subarray(0, end)));
    if (random.below(3) === 0) steps.push({ do: random.pick(["turn", "wait", "wait", "stop reading"]) });
  }
  for (let count = random.below(3); count > 0; count -= 1) steps.push({ do: random.pick(["turn", "wait"]) });
  steps.push({ do: random.pick(["end", "close", "reset"]) });
  return steps;
}

function sendInPieces(random: Random, bytes: Buffer): Step[] {
  const steps: Step[] = [];
  let at = 0;
  for (let cuts = random.pick([0, 0, 1, 3]); cuts > 0; cuts -= 1) {
    const end = at + random.below(bytes.length - at + 1);
    steps.push({ do: "send", bytes: bytes.subarray(at, end) }, { do: "turn" });
    at = end;
  }
  return [...steps, { do: "send", bytes: bytes.subarray(at) }];
}

function writeRequest(random: Random, { method, path, headers, body }: FuzzRequest): Buffer {
  const target =
    random.below(20) === 0 ? random.pick(["*", "localhost:80", `http://localhost${path}`]) : path;
  const version = random.below(30) === 0 ? random.pick(["1.0", "2.0", "0.9", "1.1 "]) : "1.1";
  const [framing, bytes] = frameBody(random, body);
  const lines = [
    ...(random.below(20) === 0 ? [] : ["host: localhost"]),
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...framing,
    ...(random.below(12) === 0 ? [random.pick(oddLines)] : []),
  ];
  return Buffer.concat([
    Buffer.from(`${method} ${target} HTTP/${version}\r\n${lines.join("\r\n")}\r\n\r\n`, "latin1"),
    bytes,
  ]);
}

const oddLines = [
  "connection: close",
  "connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__",
  "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13",
  "transfer-encoding: gzip, chunked",
  "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
  "content-length: 5\r\ncontent-length: 6",
  "keep-alive: timeout=1",
  "trailer: x-trailer",
  "host: other.example",
  " folded",
  "x\0y: z",
  "x y: z",
];

/** The headers that announce a body, and the body. */
function frameBody(random: Random, body: Buffer): readonly [string[], Buffer] {
  if (body.length === 0 && random.below(3) > 0) return [[], body];
  if (random.below(2) === 0) {
    const { length } = body;
    const announced = random.pick([length, length, length, length + 1, length - 1, -1, 1e15]);
    return [[`content-length: ${announced}`], body];
  }
  return [["transfer-encoding: chunked"], writeChunks(random, body)];
}

function writeChunks(random: Random, body: Buffer): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  while (at < body.length && parts.length < 20) {
    const size = 1 + random.below(body.length - at);
    const shown =
      random.below(30) === 0 ? random.pick(["x", "-1", "ffffffffffffffff", "0x5", ""]) : size.toString(16);
    const extension = random.below(20) === 0 ? ";x=y" : "";
    const end = random.below(30) === 0 ? "" : "\r\n";
    parts.push(Buffer.from(`${shown}${extension}\r\n`), body.subarray(at, at + size), Buffer.from(end));
    at += size;
  }
  const end = "0\r\n\r\n";
  const last = random.pick([end, end, end, "0\r\nx-trailer: 1\r\n\r\n", "0\r\n", "", "0\r\n:\r\n\r\n"]);
  return Buffer.concat([...parts, Buffer.from(last)]);
}
