import type { PostQuantumSignatureAlgorithm } from "../../crypto/algorithms.ts";
import { checkSignatureLength } from "../fields.ts";
import type { KeyInput } from "./attempt.ts";
import type { SignDeps } from "./sign.ts";
import { type Use, type UsedKey, useKey } from "./use-key.ts";

/** The signature to verify, and the message that it covers. */
export interface VerifyInput extends KeyInput {
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
  /** 0 to 255 bytes. */
  readonly context: Uint8Array;
}

/** The outcome, and the key that was used. */
export interface Verified extends UsedKey {
  readonly valid: boolean;
}

/** A rotated key still verifies its earlier signatures. */
const verifying: Use = { operation: "VERIFY", states: ["ACTIVE", "ROTATED"], usage: "SIGN" };

/**
 * Tells whether a stored key made a signature (FIPS 204, section 5.3; FIPS 205, section 10.3; pure).
 *
 * @throws as useKey does; LENGTH_INVALID for a signature of the wrong length for the algorithm
 */
export function verify(deps: SignDeps, input: VerifyInput): Promise<Verified> {
  const { data, signature, context, ...who } = input;
  return useKey(deps, who, verifying, async (key) => {
    const { algorithm } = key.record;
    // useKey admits only signing keys. The length of an ECDSA signature varies.
    if (algorithm !== "ECDSA-P256")
      checkSignatureLength(algorithm as PostQuantumSignatureAlgorithm, signature);
    const valid = await deps.provider.verify(key.publicKey(), data, signature, { context });
    return { result: { valid }, details: [`valid=${valid}`] };
  });
}
