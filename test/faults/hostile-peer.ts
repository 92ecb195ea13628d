/** Peers that may answer our outgoing connections: everything except the server that we expect. */
import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { gzipSync } from "node:zlib";
import { onTestFinished, vi } from "vitest";
import { envelope } from "../server/raw.ts";
import { endAfterAll } from "../support/at-end.ts";
import {
  emptySettings,
  frameTypes,
  writeFields,
  writeFrame,
  writeSettings,
  writeUint32,
} from "../support/http2-frames.ts";
import { createRandom } from "./mutations.ts";

/** How a peer treats a connection. */
export type Behaviour = (socket: net.Socket) => void;

/** A port with a peer that the test chooses. */
export interface HostilePeer {
  readonly port: number;
  /** Connections that the other side has not closed yet. */
  readonly open: ReadonlySet<net.Socket>;
  /** Connections so far. */
  readonly seen: () => number;
  /** Bytes that the other side and the system's buffers have accepted so far. */
  readonly sentBytes: () => number;
  /** Changes the behaviour for later connections. */
  become(behaviour: Behaviour): void;
}

/**
 * Waits until the other side has closed all its connections. A peer that reads nothing only notices this if it reads.
 */
export function waitUntilClosed({ open }: HostilePeer): Promise<void> {
  return vi.waitFor(
    () => {
      for (const socket of open) socket.resume();
      if (open.size > 0) throw new Error(`${open.size} connections are open`);
    },
    { timeout: 100_000 },
  );
}

/** Listens for one test, or until `atEnd`. */
export async function startHostilePeer(
  first: Behaviour,
  atEnd: (end: () => void) => void = onTestFinished,
): Promise<HostilePeer> {
  let behave = first;
  let seen = 0;
  let endedBytes = 0;
  const open = new Set<net.Socket>();
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    seen += 1;
    open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      open.delete(socket);
      endedBytes += socket.bytesWritten;
    });
    behave(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    open,
    seen: () => seen,
    sentBytes: () => [...open].reduce((sum, { bytesWritten }) => sum + bytesWritten, endedBytes),
    become: (behaviour) => {
      behave = behaviour;
    },
  };
}

/** Makes a peer for each of some numbers. */
function each(values: Iterable<number>, make: (value: number) => [name: string, Behaviour]) {
  return Object.fromEntries(Array.from(values, make));
}

function randomBytes(seed: number, count: number): Buffer {
  const random = createRandom(seed);
  return Buffer.from(Array.from({ length: count }, () => random.below(256)));
}

/** Ends when the other side ends. */
function followEnd(socket: net.Socket): void {
  socket.on("end", () => socket.end());
  socket.resume();
}

/** Writes at once, whatever the other side sends. */
const greet =
  (bytes: string | Uint8Array): Behaviour =>
  (socket) => {
    socket.write(bytes);
    followEnd(socket);
  };

/** Writes once the other side has sent something. */
const reply =
  (bytes: string | Uint8Array, then: Behaviour = () => {}): Behaviour =>
  (socket) => {
    socket.once("data", () => {
      socket.write(bytes);
      then(socket);
    });
    followEnd(socket);
  };

/** Writes endlessly, as fast as the other side reads. */
const pour =
  (start: Uint8Array, piece: Uint8Array): Behaviour =>
  (socket) => {
    socket.write(start);
    const go = (): void => {
      while (socket.writable && socket.write(piece));
    };
    socket.on("drain", go);
    go();
    followEnd(socket);
  };

/** Peers that do not speak HTTP/2. */
export const foreignPeers: Readonly<Record<string, Behaviour>> = {
  "answers HTTP/1.1": reply("HTTP/1.1 400 Bad Request\r\ncontent-length: 4\r\n\r\nno\r\n"),
  "answers HTTP/1.1 and closes": reply("HTTP/1.1 505 HTTP Version Not Supported\r\n\r\n", (socket) =>
    socket.end(),
  ),
  "greets like SSH": greet("SSH-2.0-OpenSSH_9.6\r\n"),
  "greets like SMTP and closes": (socket) => void socket.end("220 mail.example ESMTP\r\n"),
  "greets with a TLS alert": greet(Buffer.from([0x15, 3, 3, 0, 2, 2, 70])),
  "answers with a TLS alert and closes": reply(Buffer.from([0x15, 3, 3, 0, 2, 2, 70]), (socket) =>
    socket.end(),
  ),
  ...each([1, 2, 3], (seed) => [`greets with garbage ${seed}`, greet(randomBytes(seed, 65_536))]),
  "sends endless garbage": pour(Buffer.alloc(0), randomBytes(4, 65_536)),
  "sends an endless HTTP/1.1 body": pour(
    Buffer.from("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"),
    Buffer.alloc(65_536, " "),
  ),
  "sends endless HTTP/1.1 headers": pour(
    Buffer.from("HTTP/1.1 200 OK\r\n"),
    Buffer.from("x-more: and more\r\n".repeat(4000)),
  ),
  "closes at once": (socket) => void socket.end(),
  "closes after the request": reply("", (socket) => socket.end()),
  "resets at once": (socket) => void socket.resetAndDestroy(),
  "resets after the request": reply("", (socket) => socket.resetAndDestroy()),
};

/** Peers that send nothing, or too little, so that only a deadline ends a call. */
export const silent: Readonly<Record<string, Behaviour>> = {
  "says nothing": followEnd,
  "reads nothing": (socket) => {
    socket.on("end", () => socket.end());
    socket.pause();
  },
};

function numbers(...values: number[]): Buffer {
  return Buffer.concat(values.map(writeUint32));
}

const after = (...frames: Uint8Array[]): Behaviour => greet(Buffer.concat([emptySettings, ...frames]));
/** Frames that need an open stream: our client sends its first request with its preface, or soon after. */
const onRequest =
  (...frames: Uint8Array[]): Behaviour =>
  (socket) => {
    socket.write(emptySettings);
    let seen = Buffer.alloc(0);
    const look = (bytes: Buffer): void => {
      seen = Buffer.concat([seen, bytes]);
      if (!hasHeaders(seen)) return;
      socket.off("data", look);
      socket.write(Buffer.concat(frames));
    };
    socket.on("data", look);
    followEnd(socket);
  };

const prefaceBytes = 24;

function hasHeaders(bytes: Buffer): boolean {
  for (let at = prefaceBytes; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3))
    if (bytes.readUInt8(at + 3) === frameTypes.headers) return true;
  return false;
}

/** ":status: 200" of the static table (RFC 7541, appendix A). */
const status200 = Buffer.from([0x88]);
const grpcHead = Buffer.concat([status200, writeFields([["content-type", "application/grpc"]])]);
/** A block of 16 KB with fields of 100 bytes. */
const manyFields = writeFields(Array.from({ length: 150 }, (_, i) => [`x-${i}`, "v".repeat(95)]));
const goawayCodes = [0, 1, 2, 7, 11, 0xffffffff];
const resetCodes = [...Array(14).keys(), 0xdeadbeef];

const headers = (flag: number, block: Uint8Array) => writeFrame(frameTypes.headers, flag, 1, block);
const continuation = (flag: number, block: Uint8Array) => writeFrame(frameTypes.continuation, flag, 1, block);
const settings = (payload: Uint8Array) => writeFrame(frameTypes.settings, 0, 0, payload);
const goaway = (payload: Uint8Array) => writeFrame(frameTypes.goaway, 0, 0, payload);
const repeated = (times: number, bytes: Buffer) => Buffer.concat(Array<Buffer>(times).fill(bytes));

/** Peers whose frames are invalid or unwelcome. */
export const frameErrors: Readonly<Record<string, Behaviour>> = {
  "greets with HTTP/2 and then garbage": after(randomBytes(5, 4096)),
  ...each(Array(11).keys(), (kind) => [
    `sends a frame of type ${kind} with garbage`,
    onRequest(writeFrame(kind, 0x05, kind % 2, randomBytes(kind, 40))),
  ]),
  ...each(goawayCodes, (code) => [`sends GOAWAY ${code} at once`, after(goaway(numbers(0, code)))]),
  ...each(goawayCodes, (code) => [
    `answers the request with GOAWAY ${code} and closes`,
    (socket) => {
      onRequest(goaway(numbers(0, code)))(socket);
      socket.on("data", (bytes: Buffer) => void (hasHeaders(bytes) && socket.end()));
    },
  ]),
  "sends GOAWAY because of too many pings": after(
    goaway(Buffer.concat([numbers(0, 11), Buffer.from("too_many_pings")])),
  ),
  ...each(resetCodes, (code) => [
    `resets the request with ${code}`,
    onRequest(writeFrame(frameTypes.rstStream, 0, 1, numbers(code))),
  ]),
  ...each([0, 2, 8], (code) => [
    `begins an answer and resets it with ${code}`,
    onRequest(headers(4, grpcHead), writeFrame(frameTypes.rstStream, 0, 1, numbers(code))),
  ]),
  "resets an unopened stream": after(writeFrame(frameTypes.rstStream, 0, 7, numbers(2))),
  "sends DATA before HEADERS": onRequest(writeFrame(frameTypes.data, 1, 1, envelope(""))),
  "ends with HEADERS that have no status": onRequest(headers(5, writeFields([["x", "y"]]))),
  "sends HEADERS with a broken block": onRequest(headers(5, Buffer.from([0xff, 0xff, 0xff]))),
  "sends headers of 2 MB": onRequest(
    headers(1, Buffer.concat([grpcHead, manyFields])),
    repeated(130, continuation(0, manyFields)),
    continuation(4, manyFields),
  ),
  "sends endless CONTINUATION": pour(
    Buffer.concat([emptySettings, headers(0, grpcHead)]),
    continuation(0, manyFields),
  ),
  "sends endless empty CONTINUATION": pour(
    Buffer.concat([emptySettings, headers(0, grpcHead)]),
    repeated(1000, continuation(0, Buffer.alloc(0))),
  ),
  "pushes a stream": onRequest(
    writeFrame(frameTypes.pushPromise, 4, 1, Buffer.concat([numbers(2), grpcHead])),
  ),
  "opens a window of zero bytes": after(writeFrame(frameTypes.windowUpdate, 0, 0, numbers(0))),
  "opens a window beyond the limit": after(writeFrame(frameTypes.windowUpdate, 0, 0, numbers(0x7fffffff))),
  "sends SETTINGS with a wrong length": after(settings(Buffer.alloc(5))),
  "sets a window beyond the limit": after(settings(writeSettings([[4, 0xffffffff]]))),
  "sets a frame size of zero": after(settings(writeSettings([[5, 0]]))),
  "acknowledges unsent SETTINGS": after(repeated(10, writeFrame(frameTypes.settings, 1, 0, Buffer.alloc(0)))),
  "sends a frame of 16 MB": after(
    Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]),
    Buffer.alloc(16_777_215),
  ),
};

/** Peers that keep a connection busy or useless, so that only a deadline ends a call. */
export const endlessFrames: Readonly<Record<string, Behaviour>> = {
  "allows no streams": after(settings(writeSettings([[3, 0]]))),
  "allows no body": after(settings(writeSettings([[4, 0]]))),
  "sends endless SETTINGS": pour(emptySettings, repeated(1000, emptySettings)),
  "sends endless PING": pour(
    emptySettings,
    repeated(1000, writeFrame(frameTypes.ping, 0, 0, Buffer.alloc(8))),
  ),
  "sends endless empty DATA": (socket) => {
    socket.write(emptySettings);
    const piece = repeated(1000, writeFrame(frameTypes.data, 0, 1, Buffer.alloc(0)));
    socket.once("data", () => {
      pour(headers(4, grpcHead), piece)(socket);
    });
    followEnd(socket);
  },
};

/** Serves valid HTTP/2, and answers each request with its own behaviour. */
function over2(answer: (stream: http2.ServerHttp2Stream) => void): Behaviour {
  const server = http2.createServer({ maxSendHeaderBlockLength: 1024 * 1024 });
  server.on("session", (session) => session.on("error", () => {}));
  server.on("stream", (stream: http2.ServerHttp2Stream) => {
    stream.on("error", () => {});
    stream.resume();
    answer(stream);
  });
  return (socket) => {
    socket.allowHalfOpen = false;
    server.emit("connection", socket);
  };
}

type Fields = http2.OutgoingHttpHeaders;
const grpcHeaders: Fields = { ":status": 200, "content-type": "application/grpc" };
const nothing = Buffer.alloc(0);

/** Answers a gRPC call with a body and trailers. */
const grpc = (body: Uint8Array, trailers: Fields, head: Fields = {}): Behaviour =>
  over2((stream) => {
    stream.respond({ ...grpcHeaders, ...head }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.end(body);
  });
const ok = { "grpc-status": "0" };
const bomb = gzipSync(Buffer.alloc(256 * 1024 * 1024), { level: 9 });

/** Peers that speak HTTP/2 but not gRPC, or gRPC with protocol errors. */
export const grpcErrors: Readonly<Record<string, Behaviour>> = {
  "answers without trailers": over2((stream) => {
    stream.respond(grpcHeaders);
    stream.end(envelope(""));
  }),
  "answers a page": over2((stream) => {
    stream.respond({ ":status": 200, "content-type": "text/html" });
    stream.end("<p>no");
  }),
  ...each([100, 204, 301, 401, 404, 429, 503], (status) => [
    `answers ${status}`,
    over2((stream) => {
      if (status === 100) stream.additionalHeaders({ ":status": status });
      stream.respond({ ":status": status === 100 ? 500 : status }, { endStream: true });
    }),
  ]),
  ...Object.fromEntries(
    ["", "-1", "17", "abc", "99999999999999999999", "0, 0"].map((status) => [
      `ends with the status "${status}"`,
      grpc(nothing, { "grpc-status": status }),
    ]),
  ),
  "ends with details that are garbage": grpc(nothing, {
    "grpc-status": "3",
    "grpc-message": "%zz%",
    "grpc-status-details-bin": "!!!",
  }),
  "ends with a message of 40 KB": grpc(nothing, {
    "grpc-status": "3",
    "grpc-message": "x".repeat(40_000),
  }),
  "answers no message": grpc(nothing, ok),
  "answers two messages": grpc(Buffer.concat([envelope(""), envelope("")]), ok),
  "answers a cut envelope": grpc(Buffer.from([0, 0, 0]), ok),
  "answers a cut message": grpc(envelope("four").subarray(0, 7), ok),
  "announces a message of 4 GB": grpc(Buffer.from([0, 0xff, 0xff, 0xff, 0xff]), ok),
  "answers a message of 66 MB": grpc(envelope(Buffer.alloc(66 * 1024 * 1024)), ok),
  "answers a message that is not Protobuf": grpc(envelope(Buffer.alloc(100, 0xff)), ok),
  "compresses without naming an encoding": grpc(envelope(gzipSync("x"), 1), ok),
  "compresses in an unknown way": grpc(envelope("x", 1), ok, { "grpc-encoding": "nonsense" }),
  "compresses garbage": grpc(envelope("garbage", 1), ok, { "grpc-encoding": "gzip" }),
  "compresses 256 MB of zeros": grpc(envelope(bomb, 1), ok, { "grpc-encoding": "gzip" }),
  "closes in the middle of a message": over2((stream) => {
    stream.respond(grpcHeaders);
    stream.write(envelope("four").subarray(0, 7), () => stream.session?.destroy());
  }),
};

/** Peers that speak gRPC slowly or endlessly, so that only a deadline ends a call. */
export const endlessAnswers: Readonly<Record<string, Behaviour>> = {
  "never answers": over2(() => {}),
  "sends a byte at a time": over2((stream) => {
    stream.respond(grpcHeaders);
    const timer = setInterval(() => stream.write(Buffer.alloc(1)), 100);
    stream.on("close", () => clearInterval(timer));
  }),
  "sends endless empty messages": over2((stream) => {
    stream.respond(grpcHeaders);
    const piece = Buffer.alloc(5 * 4000);
    const go = (): void => {
      while (stream.writable && stream.write(piece));
    };
    stream.on("drain", go);
    go();
  }),
};

/** Peers that end a call on their own. */
export const quickPeers: Readonly<Record<string, Behaviour>> = {
  ...foreignPeers,
  ...frameErrors,
  ...grpcErrors,
};
/** Peers that need a deadline to end a call. */
export const endlessPeers: Readonly<Record<string, Behaviour>> = {
  ...silent,
  ...endlessFrames,
  ...endlessAnswers,
};

/** A little more than the system's buffers accept from an endless sender. */
export const maxTakenBytes = 96 * 1024 * 1024;
export const allPeers = { ...quickPeers, ...endlessPeers };

/**
 * The peers for a test that starts a program for each: every eighth, and all of them in `test:full`. Each kind of
 * connection meets all of them in a test that starts one program.
 */
export function selectPeers(
  peers: Readonly<Record<string, Behaviour>>,
): readonly (readonly [string, Behaviour])[] {
  return Object.entries(peers).filter((_, index) => index % 8 === 0 || process.env.QSP_TEST_LONG === "1");
}

/** Cleans up after the tests of a connection. */
export const collectEnds = endAfterAll;
