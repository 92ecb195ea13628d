/**
 * HTTP/2 calls whose frames the test sees.
 *
 * An HTTP/2 client library hides how a stream ends: it reports the same for HEADERS with END_STREAM as for
 * HEADERS and an empty DATA frame, and gRPC clients reject the second. Here, Node's library only decodes the
 * fields (HPACK); the frames are read from the bytes of the connection.
 */
import http2 from "node:http2";
import net from "node:net";
import { Duplex } from "node:stream";
import { onTestFinished } from "vitest";
import { flags, frameTypes, writeFields, writeFrame } from "../support/http2-frames.ts";
import { envelope, type RawAnswer, readStream } from "./raw.ts";

/** A frame of a stream (RFC 9113, section 4.1). A header block of several frames counts as one. */
export interface Frame {
  readonly type: "DATA" | "HEADERS" | "RST_STREAM";
  readonly streamId: number;
  readonly payloadBytes: number;
  readonly endStream: boolean;
}

/** An answer and the frames that carried it. */
export interface FramedAnswer extends RawAnswer {
  readonly frames: readonly Frame[];
}

/** A connection that closes with the test. */
export interface FramedConnection {
  readonly session: http2.ClientHttp2Session;
  /** Frames of all streams, in order of arrival. */
  readonly frames: readonly Frame[];
  /** Sends a request and reads the answer. An undefined body leaves the request open. */
  send(headers: http2.OutgoingHttpHeaders, body: Uint8Array | string | undefined): Promise<FramedAnswer>;
  /** Reads the answer of a stream that the test writes. */
  read(stream: http2.ClientHttp2Stream): Promise<FramedAnswer>;
}

const frameHeaderBytes = 9;
const endStreamFlag = 0x1;
const endHeadersFlag = 0x4;
const streamFrames: Readonly<Record<number, Frame["type"] | "CONTINUATION">> = {
  0: "DATA",
  1: "HEADERS",
  3: "RST_STREAM",
  9: "CONTINUATION",
};

/** A frame in wire format. */
export interface RawFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** Reads the whole frames at the start of the bytes. */
export function decodeFrames(bytes: Buffer): RawFrame[] {
  const frames: RawFrame[] = [];
  for (let at = 0; at + frameHeaderBytes <= bytes.length; ) {
    const end = at + frameHeaderBytes + bytes.readUIntBE(at, 3);
    if (end > bytes.length) break;
    frames.push({
      type: bytes.readUInt8(at + 3),
      flags: bytes.readUInt8(at + 4),
      streamId: bytes.readUInt32BE(at + 5) & 0x7fffffff,
      payload: bytes.subarray(at + frameHeaderBytes, end),
    });
    at = end;
  }
  return frames;
}

/** A gRPC call in frames. */
export function encodeCall(streamId: number, path: string, message: Uint8Array): Buffer {
  const fields = writeFields([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "localhost"],
    ["content-type", "application/grpc"],
  ]);
  return Buffer.concat([
    writeFrame(frameTypes.headers, flags.endHeaders, streamId, fields),
    writeFrame(frameTypes.data, flags.endStream, streamId, envelope(message)),
  ]);
}

/** Opens a plaintext connection. */
export function connectFramed(port: number): FramedConnection {
  const frames: Frame[] = [];
  const session = http2.connect(`http://127.0.0.1:${port}`, {
    createConnection: () => tap(net.connect(port, "127.0.0.1"), createFrameReader(frames)),
    maxSendHeaderBlockLength: 1024 * 1024,
  });
  session.on("error", () => {}); // Every stream on it fails and emits the error.
  onTestFinished(() => session.destroy());
  const read = async (stream: http2.ClientHttp2Stream): Promise<FramedAnswer> => {
    const answer = await readStream(stream);
    return { ...answer, frames: frames.filter(({ streamId }) => streamId === stream.id) };
  };
  return {
    session,
    frames,
    read,
    send: (headers, body) => {
      const stream = session.request({ ":method": "POST", ...headers });
      if (body !== undefined) stream.end(body);
      return read(stream);
    },
  };
}

/** A connection whose incoming bytes pass through a function first. */
function tap(socket: net.Socket, onBytes: (bytes: Buffer) => void): Duplex {
  const duplex = new Duplex({
    read: () => void socket.resume(),
    write: (chunk: Buffer, _encoding, callback) => void socket.write(chunk, callback),
    final: (callback) => void socket.end(callback),
    destroy: (error, callback) => {
      socket.destroy();
      callback(error);
    },
  });
  socket.on("data", (chunk: Buffer) => {
    onBytes(chunk);
    if (!duplex.push(chunk)) socket.pause();
  });
  socket.on("end", () => duplex.push(null));
  socket.on("error", (error) => duplex.destroy(error));
  socket.on("close", () => duplex.destroy());
  return duplex;
}

/**
 * Creates a function that takes a server's bytes in pieces of any size and records the frames of its streams.
 */
function createFrameReader(frames: Frame[]): (bytes: Buffer) => void {
  let rest = Buffer.alloc(0);
  let block: Frame | undefined;
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= frameHeaderBytes) {
      const payloadBytes = rest.readUIntBE(0, 3);
      if (rest.length < frameHeaderBytes + payloadBytes) return;
      const type = streamFrames[rest.readUInt8(3)];
      const flags = rest.readUInt8(4);
      const streamId = rest.readUInt32BE(5) & 0x7fffffff;
      rest = rest.subarray(frameHeaderBytes + payloadBytes);
      if (type === undefined) continue;
      if (type === "CONTINUATION") {
        if (block === undefined) throw new Error("CONTINUATION without HEADERS");
        block = { ...block, payloadBytes: block.payloadBytes + payloadBytes };
      } else {
        const mayEnd = type !== "RST_STREAM";
        block = { type, streamId, payloadBytes, endStream: mayEnd && (flags & endStreamFlag) !== 0 };
      }
      const isWhole = block.type !== "HEADERS" || (flags & endHeadersFlag) !== 0;
      if (!isWhole) continue;
      frames.push(block);
      block = undefined;
    }
  };
}
