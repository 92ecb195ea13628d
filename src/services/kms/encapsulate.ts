import type { KemAlgorithm } from "../../crypto/algorithms.ts";
import type { Encapsulation } from "../../crypto/provider.ts";
import { checkCiphertextLength } from "../fields.ts";
import type { SignParts } from "./sign.ts";
import { done, type KeyOrder, openSecretKey, type UseOrder, useKey } from "./with-key.ts";

/** The key that something is about. */
interface AboutKey {
  readonly keyId: string;
  readonly algorithm: string;
}

/**
 * Makes a shared secret for a stored key (FIPS 203, section 7.2).
 *
 * @throws as useKey does
 */
export function encapsulate(parts: SignParts, order: KeyOrder): Promise<Encapsulation & AboutKey> {
  const { keyId } = order;
  const use: UseOrder = { ...order, operation: "ENCAPSULATE", states: ["ACTIVE"], usage: "KEM" };
  return useKey(parts, use, async (key) => {
    const encapsulation = await parts.provider.encapsulate(key.publicKey());
    const { algorithm } = key.record;
    return { result: { ...encapsulation, keyId, algorithm }, entries: [done(`algorithm=${algorithm}`)] };
  });
}

/**
 * Recovers a shared secret with a stored key (FIPS 203, section 7.3). A key that was rotated still does, for
 * ciphertexts that were made before.
 *
 * @throws as useKey does; LENGTH_INVALID for a ciphertext of a length that the algorithm does not have
 */
export function decapsulate(
  parts: SignParts,
  { ciphertext, ...who }: KeyOrder & { readonly ciphertext: Uint8Array },
): Promise<AboutKey & Pick<Encapsulation, "sharedSecret">> {
  const { keyId } = who;
  const use: UseOrder = { ...who, operation: "DECAPSULATE", states: ["ACTIVE", "ROTATED"], usage: "KEM" };
  return useKey(parts, use, async (key) => {
    const { algorithm } = key.record;
    // useKey let ML-KEM keys through only.
    checkCiphertextLength(algorithm as KemAlgorithm, ciphertext);
    const secretKey = await openSecretKey(parts, key, use);
    const sharedSecret = await parts.provider.decapsulate(secretKey, ciphertext);
    return { result: { sharedSecret, keyId, algorithm }, entries: [done(`algorithm=${algorithm}`)] };
  });
}
