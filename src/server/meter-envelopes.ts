/** Counts the bytes of the message of a stream that is still arriving. */
import { bodyTooLarge } from "../errors.ts";
import type { ByteMeter } from "../transcoding/body.ts";

/** Flags (1 byte) and length (4 bytes, big-endian) before each message of a stream, in all three protocols. */
const prefixBytes = 5;

/**
 * Passes the pieces of a stream through. Charges a message to the meter from its first byte until it is complete.
 * Then the handler processes it, and reads no further before it is done.
 *
 * @throws BODY_TOO_LARGE as soon as the prefix of a message announces more than maxBytes, or what the meter throws
 */
export async function* meterEnvelopes(
  pieces: AsyncIterable<Uint8Array>,
  meter: ByteMeter | undefined,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  const prefix = Buffer.alloc(prefixBytes);
  let prefixLength = 0;
  let left = 0;
  let cost = 0;
  // Not "for await": a refusal would end the source and the connection that must carry the answer.
  const source = pieces[Symbol.asyncIterator]();
  for (let next = await source.next(); next.done !== true; next = await source.next()) {
    const piece = next.value;
    cost += meter?.charge(piece.length) ?? 0;
    let wholeUntil = 0;
    for (let at = 0; at < piece.length; ) {
      if (prefixLength < prefixBytes) {
        const part = piece.subarray(at, at + prefixBytes - prefixLength);
        prefix.set(part, prefixLength);
        prefixLength += part.length;
        at += part.length;
        if (prefixLength < prefixBytes) break;
        left = prefix.readUInt32BE(1);
        if (left > maxBytes) {
          // The messages before it are whole. Whether the handler gets them must not depend on how the pieces were cut.
          if (wholeUntil > 0) yield piece.subarray(0, wholeUntil);
          throw bodyTooLarge(maxBytes);
        }
      } else {
        const taken = Math.min(left, piece.length - at);
        left -= taken;
        at += taken;
      }
      if (left > 0) continue;
      prefixLength = 0;
      wholeUntil = at;
    }
    // The part of an unfinished message stays counted.
    if (wholeUntil > 0) {
      meter?.refund(cost);
      cost = wholeUntil < piece.length ? (meter?.charge(piece.length - wholeUntil) ?? 0) : 0;
    }
    yield piece;
  }
}
