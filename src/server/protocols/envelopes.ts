/** Splits the body of a stream into messages, in gRPC, gRPC-Web and Connect. */
import { bodyTooLarge, refuse } from "../../errors.ts";
import { type IncomingBody, withinTime } from "../../transcoding/body.ts";
import { prefixBytes } from "./messages.ts";

/**
 * Yields complete envelopes. The meter is charged for the bytes of an envelope until it is complete: then the
 * handler processes it, and reads nothing further until it is done.
 *
 * @throws BODY_TOO_LARGE as soon as a prefix announces more than maxBytes, after the envelopes before it;
 *   BODY_INCOMPLETE, or whatever the meter throws
 */
export async function* splitEnvelopes(incoming: IncomingBody, maxBytes: number): AsyncGenerator<Buffer> {
  const { meter } = incoming;
  // Pieces are joined only once enough bytes have arrived, so that many small pieces stay cheap.
  let pieces: Uint8Array[] = [];
  let size = 0;
  let cost = 0;
  let wanted = prefixBytes;
  for await (const chunk of withinTime(incoming)) {
    cost += meter?.charge(chunk.length) ?? 0;
    pieces.push(chunk);
    size += chunk.length;
    if (size < wanted) continue;
    let rest = Buffer.concat(pieces, size);
    const left = size - findEnd(rest, maxBytes);
    if (left < size) {
      meter?.refund(cost);
      cost = left > 0 ? (meter?.charge(left) ?? 0) : 0;
    }
    wanted = lengthOfFirst(rest, maxBytes);
    while (rest.length >= wanted && rest.length >= prefixBytes) {
      yield rest.subarray(0, wanted);
      rest = rest.subarray(wanted);
      wanted = lengthOfFirst(rest, maxBytes);
    }
    pieces = [rest];
    size = rest.length;
  }
  if (size > 0) throw refuse("BODY_INCOMPLETE", "the request ends in the middle of a message");
}

/** Finds the end of the last complete envelope. */
function findEnd(bytes: Buffer, maxBytes: number): number {
  let at = 0;
  while (at + prefixBytes <= bytes.length) {
    const length = bytes.readUInt32BE(at + 1);
    if (length > maxBytes || at + prefixBytes + length > bytes.length) break;
    at += prefixBytes + length;
  }
  return at;
}

/**
 * Returns the size of the first envelope, or of its prefix while that is incomplete.
 *
 * @throws BODY_TOO_LARGE
 */
function lengthOfFirst(bytes: Buffer, maxBytes: number): number {
  if (bytes.length < prefixBytes) return prefixBytes;
  const length = bytes.readUInt32BE(1);
  if (length > maxBytes) throw bodyTooLarge(maxBytes);
  return prefixBytes + length;
}
