/** What an HTTP/2 client without a library sends: frames of every type, valid and broken, before it disconnects. */

import {
  flags,
  frameTypes,
  preface,
  writeFields,
  writeFrame,
  writeSettings,
  writeUint32,
} from "../support/http2-frames.ts";
import { type Api, type FuzzRequest, makeRequest } from "./fuzz-requests.ts";
import type { Step } from "./fuzz-run.ts";
import { mutate, type Random } from "./mutations.ts";

/** The client's side of a connection. */
class Connection {
  readonly random: Random;
  readonly api: Api;
  /** Open streams, with the rest of their bodies; undefined for a stream that has ended. */
  readonly streams = new Map<number, Buffer | undefined>();
  #nextId = 1;

  constructor(random: Random, api: Api) {
    this.random = random;
    this.api = api;
  }

  open(body: Buffer | undefined): number {
    const id = this.#nextId;
    this.#nextId += 2;
    this.streams.set(id, body);
    return id;
  }

  /** An open stream, or rarely any other number. */
  anyId(): number {
    const ids = [...this.streams.keys()];
    if (ids.length === 0 || this.random.below(16) === 0)
      return this.random.pick([0, 1, 2, 3, 99, 0x7fffffff, 0xffffffff]);
    // The newest stream is the most interesting one.
    return this.random.below(2) === 0 ? (ids.at(-1) ?? 1) : this.random.pick(ids);
  }
}

/** Makes the sequence for one connection. */
export function makeHttp2Sequence(random: Random, api: Api): Step[] {
  const connection = new Connection(random, api);
  const steps: Step[] = [];
  const pending: Buffer[] = [writePreface(random)];
  const flush = (): void => {
    if (pending.length > 0) steps.push({ do: "send", bytes: Buffer.concat(pending.splice(0)) });
  };
  for (let count = 1 + random.below(10); count > 0; count -= 1) {
    pending.push(...random.pick(pieces)(connection));
    if (random.below(2) === 0) continue;
    if (random.below(12) === 0) pending.push(cut(random, pending.splice(0)));
    flush();
    if (random.below(3) === 0) steps.push({ do: random.pick(["turn", "turn", "wait", "stop reading"]) });
  }
  flush();
  for (let count = random.below(3); count > 0; count -= 1) steps.push({ do: random.pick(["turn", "wait"]) });
  steps.push({ do: random.pick(["end", "close", "reset"]) });
  return steps;
}

/** Cuts bytes anywhere, including within a frame header. */
function cut(random: Random, bytes: Buffer[]): Buffer {
  const whole = Buffer.concat(bytes);
  return whole.subarray(0, random.below(whole.length + 1));
}

function writePreface(random: Random): Buffer {
  const settings = writeFrame(frameTypes.settings, 0, 0, makeSettings(random));
  switch (random.below(40)) {
    case 0:
      return cut(random, [preface, settings]);
    case 1:
      return preface;
    case 2:
      return mutate(random, Buffer.concat([preface, settings]));
    default:
      return Buffer.concat([preface, settings]);
  }
}

function makeSettings(random: Random): Buffer {
  const options = [
    [1, 0], // SETTINGS_HEADER_TABLE_SIZE
    [2, 0], // SETTINGS_ENABLE_PUSH
    [2, 1],
    [3, 0], // SETTINGS_MAX_CONCURRENT_STREAMS
    [4, 0], // SETTINGS_INITIAL_WINDOW_SIZE
    [4, 1],
    [4, 0x7fffffff],
    [5, 16384], // SETTINGS_MAX_FRAME_SIZE
    [6, 10], // SETTINGS_MAX_HEADER_LIST_SIZE
    [8, 1], // SETTINGS_ENABLE_CONNECT_PROTOCOL
    [0xfff0, 7],
  ] as const;
  return writeSettings(Array.from({ length: random.pick([0, 0, 1, 2]) }, () => random.pick(options)));
}

type MakePiece = (connection: Connection) => Buffer[];

const openRequest: MakePiece = (connection) => {
  const { random, api } = connection;
  const request = makeRequest(random, api);
  const isShort = request.body.length === 0 && random.below(4) > 0;
  const id = connection.open(isShort ? undefined : request.body);
  const block = writeFields(fieldsOf(random, request));
  return writeHeaders(random, id, spoilBlock(random, block), isShort ? flags.endStream : 0);
};

function fieldsOf(
  random: Random,
  { method, path, headers, body }: FuzzRequest,
): (readonly [string, string])[] {
  const pseudo: (readonly [string, string])[] = [
    [":method", method],
    [":path", path],
    [":scheme", random.pick(["http", "http", "https"])],
    [":authority", random.pick(["localhost", "localhost", "127.0.0.1", ""])],
  ];
  const length = random.pick([body.length, body.length, body.length + 1, 0]);
  return [
    // Without any of these, the request is malformed.
    ...(random.below(24) === 0 ? pseudo.slice(random.below(4)) : pseudo),
    ...headers,
    ...(random.below(3) === 0 ? [["content-length", String(length)] as const] : []),
    ...(random.below(30) === 0 ? [random.pick(oddFields)] : []),
  ];
}

const oddFields = [
  ["connection", "close"],
  ["Upper", "x"],
  [":status", "200"],
  ["te", "gzip"],
  ["transfer-encoding", "chunked"],
  ["x", "a\nb"],
  ["host", "other.example"],
  [":protocol", "websocket"],
] as const;

function spoilBlock(random: Random, block: Buffer): Buffer {
  switch (random.below(50)) {
    case 0:
      return mutate(random, block);
    case 1:
      return Buffer.concat([Buffer.from([0x3f, 0xff, 0xff, 0x7f]), block]); // a table beyond its limit
    case 2:
      return Buffer.concat([block, Buffer.from([0xff, 0x80])]); // an index without an entry
    default:
      return block;
  }
}

/** HEADERS with padding, priority and CONTINUATION, which may be missing. */
function writeHeaders(random: Random, id: number, block: Buffer, flag: number): Buffer[] {
  const prefix: Buffer[] = [];
  let all = flag;
  let padding = Buffer.alloc(0);
  if (random.below(10) === 0) {
    all |= flags.padded;
    padding = Buffer.alloc(random.below(20));
    prefix.push(Buffer.from([random.below(8) === 0 ? 255 : padding.length]));
  }
  if (random.below(10) === 0) {
    all |= flags.priority;
    prefix.push(writeUint32(random.pick([0, 1, id, 0x80000001])), Buffer.from([16]));
  }
  const parts = splitBlock(random, block);
  return parts.map((part, index) => {
    const isLast = index === parts.length - 1;
    const end = isLast && random.below(60) > 0 ? flags.endHeaders : 0;
    if (index > 0) return writeFrame(frameTypes.continuation, end, id, part);
    return writeFrame(frameTypes.headers, all | end, id, Buffer.concat([...prefix, part, padding]));
  });
}

/** Splits into frames of at most 16,384 bytes. */
function splitBlock(random: Random, block: Buffer): Buffer[] {
  const size = random.below(8) === 0 ? 1 + random.below(100) : 16_000;
  const parts = Array.from({ length: Math.ceil(block.length / size) }, (_, i) =>
    block.subarray(i * size, (i + 1) * size),
  );
  return parts.length === 0 ? [block] : parts.slice(0, 40);
}

const sendData: MakePiece = (connection) => {
  const { random, streams } = connection;
  const open = [...streams].filter(([, rest]) => rest !== undefined);
  const [id, body = Buffer.from("x")] = open.length > 0 ? random.pick(open) : [connection.anyId()];
  const end = random.pick([body.length, body.length, random.below(body.length + 1)]);
  const isLast = end === body.length && random.below(4) > 0;
  streams.set(id, isLast ? undefined : body.subarray(end));
  const pieces: Buffer[] = [];
  for (let at = 0; at < end; at += 16_000) {
    const ends = isLast && at + 16_000 >= end && random.below(3) > 0;
    pieces.push(
      writeData(random, id, body.subarray(at, Math.min(end, at + 16_000)), ends ? flags.endStream : 0),
    );
    if (isLast && at + 16_000 >= end && !ends) pieces.push(...endStream(random, id));
  }
  return end === 0 && isLast ? endStream(random, id) : pieces;
};

function writeData(random: Random, id: number, bytes: Buffer, flag: number): Buffer {
  if (random.below(10) > 0) return writeFrame(frameTypes.data, flag, id, bytes);
  const padding = Buffer.alloc(random.below(30));
  const length = random.below(8) === 0 ? 255 : padding.length;
  const padded = Buffer.concat([Buffer.from([length]), bytes, padding]);
  return writeFrame(frameTypes.data, flag | flags.padded, id, padded);
}

/** An empty DATA frame, or trailers, some of which are forbidden. */
function endStream(random: Random, id: number): Buffer[] {
  if (random.below(2) === 0) return [writeFrame(frameTypes.data, flags.endStream, id, Buffer.alloc(0))];
  const fields = random.pick([[["x-trailer", "1"]], [], [[":path", "/"]], [["grpc-status", "0"]]] as const);
  return writeHeaders(random, id, writeFields(fields), random.below(8) === 0 ? 0 : flags.endStream);
}

const resetCodes = [...Array(15).keys(), 0, 0, 8, 0x1f, 0x7fffffff, 0xffffffff];

const resetStream: MakePiece = (connection) => {
  const { random } = connection;
  const payload = writeUint32(random.pick(resetCodes));
  const sent = random.below(40) === 0 ? payload.subarray(1) : payload;
  return [writeFrame(frameTypes.rstStream, 0, connection.anyId(), sent)];
};

const windowUpdate: MakePiece = (connection) => {
  const { random } = connection;
  const id = random.below(2) === 0 ? 0 : connection.anyId();
  const size = random.pick([1, 1, 100, 65_535, 65_535, 1_000_000, 0, 0x7fffffff]);
  return [writeFrame(frameTypes.windowUpdate, 0, id, writeUint32(size))];
};

const settings: MakePiece = ({ random }) => {
  switch (random.below(8)) {
    case 0:
      return [writeFrame(frameTypes.settings, flags.ack, 0, Buffer.alloc(0))];
    case 1:
      return [writeFrame(frameTypes.settings, 0, 0, Buffer.alloc(5))];
    case 2:
      return [writeFrame(frameTypes.settings, flags.ack, 0, Buffer.alloc(6))];
    default:
      return [writeFrame(frameTypes.settings, 0, 0, makeSettings(random))];
  }
};

const ping: MakePiece = ({ random }) => {
  const payload = Buffer.alloc(random.below(12) === 0 ? 7 : 8);
  return [writeFrame(frameTypes.ping, random.pick([0, 0, 0, flags.ack]), 0, payload)];
};

const goaway: MakePiece = ({ random }) => {
  const last = writeUint32(random.pick([0, 1, 3, 0x7fffffff]));
  const code = writeUint32(random.pick([0, 0, 1, 2, 11, 99]));
  return [writeFrame(frameTypes.goaway, 0, 0, Buffer.concat([last, code, Buffer.from("bye")]))];
};

/** Frames that current clients do not send, and some that clients must not send. */
const oddFrame: MakePiece = (connection) => {
  const { random } = connection;
  const id = connection.anyId();
  switch (random.below(5)) {
    case 0: {
      const priority = Buffer.concat([writeUint32(random.pick([0, id])), Buffer.from([1])]);
      return [writeFrame(frameTypes.priority, 0, id, priority)];
    }
    case 1: {
      const promise = Buffer.concat([writeUint32(2), writeFields([])]);
      return [writeFrame(frameTypes.pushPromise, flags.endHeaders, id, promise)];
    }
    case 2:
      return [writeFrame(frameTypes.continuation, flags.endHeaders, id, writeFields([["x", "y"]]))];
    default: {
      const payload = Buffer.alloc(random.below(40), random.below(256));
      return [writeFrame(random.pick([0x0a, 0x0c, 0x10, 0x42, 0xff]), random.below(256), id, payload)];
    }
  }
};

const brokenFrame: MakePiece = (connection) => {
  const { random } = connection;
  const whole = Buffer.concat(random.pick(pieces.slice(0, 8))(connection));
  return [mutate(random, whole)];
};

/** Weights: most connections should last long enough to be harmed later. */
const pieces: readonly MakePiece[] = [
  ...Array<MakePiece>(3).fill(openRequest),
  ...Array<MakePiece>(3).fill(sendData),
  ...Array<MakePiece>(2).fill(resetStream),
  ...Array<MakePiece>(2).fill(windowUpdate),
  ...[settings, ping, goaway, oddFrame],
  (connection) => (connection.random.below(4) === 0 ? brokenFrame(connection) : openRequest(connection)),
];
