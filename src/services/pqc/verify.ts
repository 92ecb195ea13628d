import type { CryptoProvider } from "../../crypto/provider.ts";
import { checkSignatureLength, type PublicKeyFields, readPublicKey } from "../fields.ts";
import { toSignatureAlgorithm } from "./sign.ts";

export interface VerifyInput extends PublicKeyFields {
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
  readonly algorithm: string;
}

/**
 * Returns whether a signature verifies (FIPS 204, section 5.3; FIPS 205, section 10.3; pure, empty context).
 *
 * @throws KEY_INVALID; LENGTH_INVALID for a signature whose length is wrong for the algorithm: that is a
 *   caller mistake, not an invalid signature
 */
export async function verify(provider: CryptoProvider, input: VerifyInput): Promise<boolean> {
  const algorithm = toSignatureAlgorithm(input.algorithm);
  const publicKey = readPublicKey(provider, algorithm, input);
  checkSignatureLength(algorithm, input.signature);
  return provider.verify(publicKey, input.data, input.signature);
}
