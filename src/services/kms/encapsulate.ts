import type { KemAlgorithm } from "../../crypto/algorithms.ts";
import type { Encapsulation } from "../../crypto/provider.ts";
import { checkCiphertextLength } from "../fields.ts";
import type { KeyInput } from "./attempt.ts";
import type { SignDeps } from "./sign.ts";
import { type Use, type UsedKey, useKey } from "./use-key.ts";

const encapsulating: Use = { operation: "ENCAPSULATE", states: ["ACTIVE"], usage: "KEM" };
/** A rotated key still decapsulates earlier ciphertexts. */
const decapsulating: Use = { operation: "DECAPSULATE", states: ["ACTIVE", "ROTATED"], usage: "KEM" };

/**
 * Creates a shared secret for a stored key (FIPS 203, section 7.2).
 *
 * @throws the errors of `useKey`
 */
export function encapsulate(deps: SignDeps, input: KeyInput): Promise<Encapsulation & UsedKey> {
  return useKey(deps, input, encapsulating, async (key) => {
    const result = await deps.provider.encapsulate(key.publicKey());
    return { result, details: [`algorithm=${key.record.algorithm}`] };
  });
}

/**
 * Recovers a shared secret with a stored key (FIPS 203, section 7.3).
 *
 * @throws the errors of `useKey`; LENGTH_INVALID for a ciphertext of the wrong length for the algorithm
 */
export function decapsulate(
  deps: SignDeps,
  { ciphertext, ...who }: KeyInput & { readonly ciphertext: Uint8Array },
): Promise<UsedKey & Pick<Encapsulation, "sharedSecret">> {
  return useKey(deps, who, decapsulating, async (key) => {
    const { algorithm } = key.record;
    // useKey admits only KEM keys.
    checkCiphertextLength(algorithm as KemAlgorithm, ciphertext);
    const sharedSecret = await deps.provider.decapsulate(await key.secretKey(), ciphertext);
    return { result: { sharedSecret }, details: [`algorithm=${algorithm}`] };
  });
}
