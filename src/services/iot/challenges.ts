/** Challenges that the service recognizes as its own as long as its store exists. */
import { randomBytes } from "node:crypto";
import { equalBytes } from "../../crypto/bytes.ts";
import type { Store } from "../../store/store.ts";

/** Length of a challenge, and of its random half. */
const challengeBytes = 32;
const nonceBytes = 16;

/**
 * Creates a challenge: 16 random bytes and a 16-byte tag (HMAC-SHA-256 with a store-held key), 32 bytes
 * that look random without the key.
 *
 * The tag does not name the device: a challenge issued to a different device must not pass as a reading
 * either.
 *
 * @param nonce 16 bytes that are never used twice
 */
export function makeChallenge(
  store: Pick<Store, "tagRecord">,
  nonce: Uint8Array = randomBytes(nonceBytes),
): Uint8Array {
  return Uint8Array.from([...nonce, ...computeTag(store, nonce)]);
}

/**
 * Returns whether a service with this store issued these bytes as a challenge: pending, used, expired or
 * forgotten.
 */
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
