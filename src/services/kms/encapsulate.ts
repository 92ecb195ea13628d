import type { KemAlgorithm } from "../../crypto/algorithms.ts";
import type { Encapsulation } from "../../crypto/provider.ts";
import { checkCiphertextLength } from "../fields.ts";
import type { SignDeps } from "./sign.ts";
import { done, type KeyInput, openSecretKey, type UseInput, useKey } from "./use-key.ts";

/** The key that a result belongs to. */
interface AboutKey {
  readonly keyId: string;
  readonly algorithm: string;
}

/**
 * Makes a shared secret for a stored key (FIPS 203, section 7.2).
 *
 * @throws as useKey does
 */
export function encapsulate(deps: SignDeps, input: KeyInput): Promise<Encapsulation & AboutKey> {
  const use: UseInput = { ...input, operation: "ENCAPSULATE", states: ["ACTIVE"], usage: "KEM" };
  return useKey(deps, use, async (key) => {
    const encapsulation = await deps.provider.encapsulate(key.publicKey());
    const { keyId, algorithm } = key.record;
    return { result: { ...encapsulation, keyId, algorithm }, entries: [done(`algorithm=${algorithm}`)] };
  });
}

/**
 * Recovers a shared secret with a stored key (FIPS 203, section 7.3). A rotated key still decapsulates, for earlier
 * ciphertexts.
 *
 * @throws as useKey does; LENGTH_INVALID for a ciphertext of the wrong length for the algorithm
 */
export function decapsulate(
  deps: SignDeps,
  { ciphertext, ...who }: KeyInput & { readonly ciphertext: Uint8Array },
): Promise<AboutKey & Pick<Encapsulation, "sharedSecret">> {
  const use: UseInput = { ...who, operation: "DECAPSULATE", states: ["ACTIVE", "ROTATED"], usage: "KEM" };
  return useKey(deps, use, async (key) => {
    const { keyId, algorithm } = key.record;
    // useKey admits only KEM keys.
    checkCiphertextLength(algorithm as KemAlgorithm, ciphertext);
    const secretKey = await openSecretKey(deps, key, use);
    const sharedSecret = await deps.provider.decapsulate(secretKey, ciphertext);
    return { result: { sharedSecret, keyId, algorithm }, entries: [done(`algorithm=${algorithm}`)] };
  });
}
