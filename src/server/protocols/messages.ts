/** Reads gRPC, gRPC-Web and Connect messages, and reports exactly what is invalid. */
import { create, type DescMethod, fromBinary, type Message } from "@bufbuild/protobuf";
import { compressedFlag } from "@connectrpc/connect/protocol";
import { bodyTooLarge, refuse } from "../../errors.ts";
import type { MessageLimits } from "../../message-limits/structure-limits.ts";
import { messageMalformed, scanMessage } from "../../message-limits/wire-structure.ts";
import { parseJsonMessage } from "../../transcoding/json.ts";
import { messageMissing, severalMessages } from "../interceptors/errors.ts";
import type { CallForm } from "./form.ts";

/**
 * Bytes before a message: flags (1 byte) and length (4 bytes, big-endian), in gRPC, gRPC-Web and Connect
 * streams.
 */
export const prefixBytes = 5;

/**
 * Parses a message after checking that its structure is within the limits.
 *
 * @throws MESSAGE_TOO_COMPLEX, MESSAGE_MALFORMED, JSON_INVALID, FIELD_INVALID
 */
export function parseMessage(
  { input }: Pick<DescMethod, "input">,
  codec: CallForm["codec"],
  bytes: Uint8Array,
  { registry, structure }: Pick<MessageLimits, "registry" | "structure">,
): Message {
  if (codec === "json") return parseJsonMessage(input, bytes, { registry, structure }).message;
  if (bytes.length === 0) return create(input);
  scanMessage(input, bytes, structure);
  try {
    return fromBinary(input, bytes);
  } catch (error) {
    throw messageMalformed(error instanceof Error ? error.message : String(error));
  }
}

/**
 * Refuses a unary body as soon as it contains, or announces, more than one message may have, or a second
 * message.
 *
 * @throws BODY_TOO_LARGE, NOT_IMPLEMENTED
 */
export function checkFramedPiece(
  piece: Buffer,
  size: number,
  pieces: readonly Buffer[],
  maxBytes: number,
): void {
  if (size > maxBytes + prefixBytes) throw bodyTooLarge(maxBytes);
  const [first = piece] = pieces;
  const prefix = first.length < prefixBytes ? Buffer.concat(pieces.slice(0, prefixBytes)) : first;
  if (prefix.length < prefixBytes) return;
  // The prefix announces the length, so an oversized message is refused before it arrives.
  const end = prefixBytes + prefix.readUInt32BE(1);
  if (end > maxBytes + prefixBytes) throw bodyTooLarge(maxBytes);
  if (size > end) throw severalMessages();
}

/**
 * Unframes the message of a unary request.
 *
 * @throws NOT_IMPLEMENTED, BODY_INCOMPLETE, MESSAGE_MALFORMED
 */
export function unpackMessage(frame: Buffer): { readonly isCompressed: boolean; readonly bytes: Buffer } {
  if (frame.length === 0) throw messageMissing();
  if (frame.length < prefixBytes)
    throw refuse("BODY_INCOMPLETE", "the request ends in the middle of a message prefix");
  const end = prefixBytes + frame.readUInt32BE(1);
  if (frame.length < end)
    throw refuse("BODY_INCOMPLETE", `the request ends ${end - frame.length} bytes too early`);
  if (frame.length > end) throw severalMessages();
  return { isCompressed: readCompressedFlag(frame), bytes: frame.subarray(prefixBytes, end) };
}

/**
 * Returns whether the message in a frame is compressed.
 *
 * @throws MESSAGE_MALFORMED for other flags, such as the flags with which servers end streams
 */
export function readCompressedFlag(frame: Buffer): boolean {
  const flags = frame.readUInt8(0);
  if ((flags & ~compressedFlag) === 0) return flags === compressedFlag;
  throw messageMalformed(
    `its flags are ${flags}; send 0 for an uncompressed message or 1 for a compressed one`,
  );
}

/** Frames bytes as a message. */
export function packMessage(bytes: Uint8Array, flags = 0): Buffer {
  const frame = Buffer.allocUnsafe(prefixBytes + bytes.length);
  frame.writeUInt8(flags, 0);
  frame.writeUInt32BE(bytes.length, 1);
  frame.set(bytes, prefixBytes);
  return frame;
}
