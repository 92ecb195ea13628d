import type { PostQuantumSignatureAlgorithm } from "../../crypto/algorithms.ts";
import { checkSignatureLength } from "../fields.ts";
import type { SignParts } from "./sign.ts";
import { done, type KeyOrder, type UseOrder, useKey } from "./with-key.ts";

/** What is to be verified. */
export interface VerifyOrder extends KeyOrder {
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
  const { data, signature, context, ...who } = order;
  const { keyId } = who;
  const use: UseOrder = { ...who, operation: "VERIFY", states: ["ACTIVE", "ROTATED"], usage: "SIGN" };
  return useKey(parts, use, async (key) => {
    const { algorithm } = key.record;
    // useKey let keys for signing through only.
    checkSignatureLength(algorithm as PostQuantumSignatureAlgorithm, signature);
    const valid = await parts.provider.verify(key.publicKey(), data, signature, { context });
    return { result: { valid, keyId, algorithm }, entries: [done(`valid=${valid}`)] };
  });
}
