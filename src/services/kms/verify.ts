import type { PostQuantumSignatureAlgorithm } from "../../crypto/algorithms.ts";
import { checkSignatureLength } from "../../fields.ts";
import type { Viewer } from "../../storage/ownership.ts";
import type { SignParts } from "./sign.ts";
import { useKey } from "./use.ts";

/** What is to be verified. */
export interface VerifyOrder {
  readonly keyId: string;
  readonly viewer: Viewer;
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
  /** 0 to 255 bytes. */
  readonly context: Uint8Array;
}

/** The outcome, and the key that it is about. */
export interface Verified {
  readonly valid: boolean;
  readonly keyId: string;
  readonly algorithm: string;
}

/**
 * Tells whether a stored key made a signature (FIPS 204, section 5.3; FIPS 205, section 10.3; pure).
 *
 * @throws as useKey does; LENGTH_INVALID for a signature of a length that the algorithm does not have
 */
export function verify(parts: SignParts, order: VerifyOrder): Promise<Verified> {
  const { keyId, viewer, data, signature, context } = order;
  const use = { keyId, viewer, operation: "VERIFY", states: ["ACTIVE", "ROTATED"], usage: "SIGN" } as const;
  return useKey(parts, use, async (key) => {
    const { algorithm } = key.record;
    // useKey let keys for signing through only.
    checkSignatureLength(algorithm as PostQuantumSignatureAlgorithm, signature);
    const valid = await parts.provider.verify(key.publicKey(), data, signature, { context });
    return { result: { valid, keyId, algorithm }, details: [`valid=${valid}`] };
  });
}
