import type { CryptoProvider } from "../../crypto/provider.ts";
import { checkSignatureLength, type PublicKeyFields, readPublicKey } from "../fields.ts";
import { toSignatureAlgorithm } from "./sign.ts";

/** The signature to verify, and the message that it covers. */
export interface VerifyInput extends PublicKeyFields {
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
  readonly algorithm: string;
}

/**
 * Tells whether a signature verifies (FIPS 204, section 5.3; FIPS 205, section 10.3; pure, empty context).
 *
 * @throws KEY_INVALID, and LENGTH_INVALID for a signature of the wrong length for the algorithm: that is a mistake of
 *   the caller, not an invalid signature.
 */
export async function verify(provider: CryptoProvider, input: VerifyInput): Promise<boolean> {
  const algorithm = toSignatureAlgorithm(input.algorithm);
  const publicKey = readPublicKey(provider, algorithm, input);
  checkSignatureLength(algorithm, input.signature);
  return provider.verify(publicKey, input.data, input.signature);
}
