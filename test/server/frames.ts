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

/** A frame of a stream (RFC 9113, section 4.1). The header blocks of the tests fit into one. */
export interface Frame {
  readonly type: "DATA" | "HEADERS" | "RST_STREAM";
  readonly streamId: number;
  readonly endStream: boolean;
}

/** An answer and the frames that carried it. */
export interface FramedAnswer extends RawAnswer {
  readonly frames: readonly Frame[];
}

const frameHeaderBytes = 9;
const streamFrames: Readonly<Record<number, Frame["type"]>> = { 0: "DATA", 1: "HEADERS", 3: "RST_STREAM" };

/** A frame in wire format. */
export type RawFrame = ReturnType<typeof decodeFrames>[number];

/** Reads the whole frames at the start of the bytes. */
export function decodeFrames(bytes: Buffer) {
  const frames: { type: number; flags: number; streamId: number; payload: Buffer }[] = [];
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

/** Creates a function that takes bytes in pieces of any size, and returns the frames that they complete. */
export function createFrameDecoder(): (bytes: Buffer) => RawFrame[] {
  let rest = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    const frames = decodeFrames(rest);
    for (const { payload } of frames) rest = rest.subarray(frameHeaderBytes + payload.length);
    return frames;
  };
}

/** HEADERS of a request: a gRPC call unless the fields say otherwise. */
export function encodeHead(
  streamId: number,
  fields: Readonly<Record<string, string | undefined>>,
  flag = 0,
): Buffer {
  const all = { ":method": "POST", ":scheme": "http", ":authority": "localhost", ...grpcType, ...fields };
  const given = Object.entries(all).filter((field): field is [string, string] => field[1] !== undefined);
  return writeFrame(frameTypes.headers, flags.endHeaders | flag, streamId, writeFields(given));
}

const grpcType = { ":path": undefined, "content-type": "application/grpc" };

/** A gRPC call in frames. */
export function encodeCall(streamId: number, path: string, message: Uint8Array): Buffer {
  return Buffer.concat([
    encodeHead(streamId, { ":path": path }),
    writeFrame(frameTypes.data, flags.endStream, streamId, envelope(message)),
  ]);
}

/** A connection that closes with the test. */
export type FramedConnection = ReturnType<typeof connectFramed>;

/** Opens a plaintext connection. */
export function connectFramed(port: number) {
  const frames: Frame[] = [];
  const decode = createFrameDecoder();
  const record = (bytes: Buffer): void => {
    for (const { type: number, flags: flag, streamId } of decode(bytes)) {
      const type = streamFrames[number];
      if (type === undefined) continue;
      const endStream = type !== "RST_STREAM" && (flag & flags.endStream) !== 0;
      frames.push({ type, streamId, endStream });
    }
  };
  const session = http2.connect(`http://127.0.0.1:${port}`, {
    createConnection: () => tap(net.connect({ port, host: "127.0.0.1", noDelay: true }), record),
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
    /** Sends a request and reads the answer. An undefined body leaves the request open. */
    send: (headers: http2.OutgoingHttpHeaders, body: Uint8Array | string | undefined) => {
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
