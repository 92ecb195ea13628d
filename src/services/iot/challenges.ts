/** Challenges that the service recognizes as its own for the life of its store. */
import { randomBytes } from "node:crypto";
import { equalBytes } from "../../crypto/bytes.ts";
import type { Store } from "../../store/store.ts";

/** Bytes of a challenge, and of the random half in it. */
const challengeBytes = 32;
const nonceBytes = 16;

/**
 * Makes a challenge: 16 random bytes and a tag of 16 bytes (HMAC-SHA-256 under a key of the store), 32 bytes that look
 * random without that key.
 *
 * The tag does not name the device: a challenge that was issued to another device must not pass as a reading either.
 *
 * @param nonce 16 bytes that are never used twice.
 */
export function makeChallenge(
  store: Pick<Store, "tagRecord">,
  nonce: Uint8Array = randomBytes(nonceBytes),
): Uint8Array {
  return Uint8Array.from([...nonce, ...computeTag(store, nonce)]);
}

/** Tells whether bytes are a challenge that a service with this store issued: pending, used, expired or forgotten. */
export function isChallenge(store: Pick<Store, "tagRecord">, bytes: Uint8Array): boolean {
  if (bytes.length !== challengeBytes) return false;
  return equalBytes(bytes.subarray(nonceBytes), computeTag(store, bytes.subarray(0, nonceBytes)));
}

function computeTag(store: Pick<Store, "tagRecord">, nonce: Uint8Array): Uint8Array {
  return Buffer.from(store.tagRecord(["iot challenge", nonce]), "hex").subarray(
    0,
    challengeBytes - nonceBytes,
  );
}
