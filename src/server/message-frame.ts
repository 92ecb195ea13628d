/** The single message of a unary gRPC call, in its frame (gRPC over HTTP/2, "Length-Prefixed-Message"). */
import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { compressedFlag } from "@connectrpc/connect/protocol";
import { refuse } from "../errors.ts";
import type { StructureLimits } from "../protocol/structure-limits.ts";
import { scanMessage } from "../protocol/wire-structure.ts";
import { messageMalformed } from "./interceptors/errors.ts";

/** Bytes before a message: flags (1 byte) and length (4 bytes, big-endian). */
export const prefixBytes = 5;

/** Takes the message of a request out of its frame. @throws NOT_IMPLEMENTED, BODY_INCOMPLETE, MESSAGE_MALFORMED */
export function unpackMessage(frame: Buffer): { readonly isCompressed: boolean; readonly bytes: Buffer } {
  if (frame.length === 0) throw refuse("NOT_IMPLEMENTED", "the request has no message; a unary call has one");
  if (frame.length < prefixBytes)
    throw refuse("BODY_INCOMPLETE", "the request ends within the prefix of a message");
  const flags = frame.readUInt8(0);
  const end = prefixBytes + frame.readUInt32BE(1);
  if (frame.length < end)
    throw refuse("BODY_INCOMPLETE", `the request ends ${end - frame.length} bytes too early`);
  if (frame.length > end)
    throw refuse("NOT_IMPLEMENTED", "the request has several messages; a unary call has one");
  if ((flags & ~compressedFlag) !== 0)
    throw messageMalformed(`its flags are ${flags}; 0 is for a plain message, 1 for a compressed one`);
  return { isCompressed: (flags & compressedFlag) !== 0, bytes: frame.subarray(prefixBytes, end) };
}

/** Puts the bytes of an answer into a frame. */
export function packMessage(bytes: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(prefixBytes + bytes.length);
  frame.writeUInt8(0, 0);
  frame.writeUInt32BE(bytes.length, 1);
  frame.set(bytes, prefixBytes);
  return frame;
}

/** Parses a message, once its structure is within the limits. @throws MESSAGE_MALFORMED */
export function readMessage(schema: DescMessage, bytes: Uint8Array, limits: StructureLimits): Message {
  scanMessage(schema, bytes, limits);
  try {
    return fromBinary(schema, bytes);
  } catch (error) {
    throw messageMalformed(error instanceof Error ? error.message : String(error));
  }
}
