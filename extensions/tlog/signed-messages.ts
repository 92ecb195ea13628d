/** The messages that each signature type signs. */
import { parseCheckpoint } from "./checkpoint.ts";
import { NoteError } from "./note.ts";
import type { VerifierKey } from "./verifier-keys.ts";

/**
 * The context (FIPS 204, section 5.2) for our own type. The same key signs other things with an empty
 * context.
 */
export const ownContext: Uint8Array = Buffer.from("c2sp.org/signed-note");

/** Maximum cosignature time (c2sp.org/tlog-cosignature) in seconds since 1970. */
const maxTimestamp = 2n ** 63n - 1n;

/**
 * Builds a signature's message.
 *
 * @param text the note's text
 * @param timestamp seconds since 1970; ignored for types without a time
 * @throws NoteError if a cosignature is for a text that is not a checkpoint
 */
export function buildSignedMessage(
  { name, type }: Pick<VerifierKey, "name" | "type">,
  text: string,
  timestamp: bigint,
): Uint8Array {
  if (type === "Ed25519" || type === "ML-DSA-65") return Buffer.from(text);
  const checkpoint = parseCheckpoint(text);
  if (timestamp > maxTimestamp) throw new NoteError("has a cosignature with a time beyond 2^63 - 1");
  if (type === "Ed25519 cosignature") return Buffer.from(`cosignature/v1\ntime ${timestamp}\n${text}`);
  // The cosigned_message structure for the whole tree: it starts at leaf 0.
  return Buffer.concat([
    Buffer.from("subtree/v1\n\0"),
    prefixLength(name),
    encodeUint64(timestamp),
    prefixLength(checkpoint.origin),
    encodeUint64(0n),
    encodeUint64(BigInt(checkpoint.size)),
    checkpoint.root,
  ]);
}

/** Encodes a number in 8 bytes, big-endian. */
export function encodeUint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}

/** RFC 8446, section 3.4: a vector of up to 255 bytes. The lengths of names and origins have been checked. */
function prefixLength(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
}
