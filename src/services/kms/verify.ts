import type { PostQuantumSignatureAlgorithm } from "../../crypto/algorithms.ts";
import { checkSignatureLength } from "../fields.ts";
import type { SignDeps } from "./sign.ts";
import { done, type KeyInput, type UseInput, useKey } from "./use-key.ts";

/** The signature to verify, and the message that it covers. */
export interface VerifyInput extends KeyInput {
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
  /** 0 to 255 bytes. */
  readonly context: Uint8Array;
}

/** The outcome, and the key that was used. */
export interface Verified {
  readonly valid: boolean;
  readonly keyId: string;
  readonly algorithm: string;
}

/**
 * Tells whether a stored key made a signature (FIPS 204, section 5.3; FIPS 205, section 10.3; pure).
 *
 * @throws as useKey does; LENGTH_INVALID for a signature of the wrong length for the algorithm
 */
export function verify(deps: SignDeps, input: VerifyInput): Promise<Verified> {
  const { data, signature, context, ...who } = input;
  const use: UseInput = { ...who, operation: "VERIFY", states: ["ACTIVE", "ROTATED"], usage: "SIGN" };
  return useKey(deps, use, async (key) => {
    const { keyId, algorithm } = key.record;
    // useKey admits only signing keys. The length of an ECDSA signature varies.
    if (algorithm !== "ECDSA-P256")
      checkSignatureLength(algorithm as PostQuantumSignatureAlgorithm, signature);
    const valid = await deps.provider.verify(key.publicKey(), data, signature, { context });
    return { result: { valid, keyId, algorithm }, entries: [done(`valid=${valid}`)] };
  });
}
