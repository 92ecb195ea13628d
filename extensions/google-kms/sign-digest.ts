/** ECDSA over a digest computed elsewhere. Neither node:crypto nor the core's providers can sign one. */
import { wipe } from "../../src/crypto/bytes.ts";
import type { SecretKey } from "../../src/crypto/provider.ts";
import type { KeyInput } from "../../src/services/kms/attempt.ts";
import { keyUsageMismatch } from "../../src/services/kms/key-refusals.ts";
import { type SignDeps, type Signed, signing } from "../../src/services/kms/sign.ts";
import { useKey } from "../../src/services/kms/use-key.ts";

export interface SignDigestInput extends KeyInput {
  /** SHA-256, 32 bytes. */
  readonly digest: Uint8Array;
}

/**
 * Signs a SHA-256 digest with a stored ECDSA key.
 *
 * @returns a signature in DER (RFC 3279, section 2.2.3)
 * @throws like useKey; KEY_USAGE_MISMATCH for a key of a different algorithm
 */
export function signDigest(deps: SignDeps, { digest, ...who }: SignDigestInput): Promise<Signed> {
  return useKey(deps, who, signing, async (key) => {
    if (key.record.algorithm !== "ECDSA-P256")
      throw keyUsageMismatch(key.record, ", which signs data, not a digest");
    const signature = await signWith(await key.secretKey(), digest);
    return { result: { signature }, details: ["input=digest"] };
  });
}

/** FIPS 186-5, section 6.4.1, hedged, with noble on the calling thread: takes less than a millisecond. */
async function signWith(secretKey: SecretKey, digest: Uint8Array): Promise<Uint8Array> {
  const scalar = secretKey.exportRaw();
  try {
    const { p256 } = await import("@noble/curves/nist.js");
    return p256.sign(digest, scalar, { prehash: false, lowS: false, extraEntropy: true, format: "der" });
  } finally {
    wipe(scalar);
  }
}
