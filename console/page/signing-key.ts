/** Keys that the browser generates and never sends. */
import { loadMlDsa, type MlDsaName } from "../../src/client/ml-dsa.ts";
import { sha256 } from "./algorithms.ts";
import { toHex } from "./values.ts";

/** A key pair whose secret key only this page has. */
export interface SigningKey {
  readonly algorithm: MlDsaName;
  readonly publicKey: Uint8Array;
  readonly secretKeyBytes: number;
  /** Signs the message itself with a context (FIPS 204, section 5.2), empty by default. */
  sign(message: Uint8Array, context?: Uint8Array): Uint8Array;
}

/** Generates a key pair (FIPS 204, section 5.1). */
export async function makeSigningKey(algorithm: MlDsaName): Promise<SigningKey> {
  const signer = await loadMlDsa(algorithm);
  const { publicKey, secretKey } = signer.keygen();
  return {
    algorithm,
    publicKey,
    secretKeyBytes: secretKey.length,
    sign: (message, context = new Uint8Array()) => signer.sign(message, secretKey, { context }),
  };
}

/** Derives a wallet or signer address: "0x" and the first 20 bytes of the public key's SHA-256. */
export async function deriveAddress(publicKey: Uint8Array): Promise<string> {
  return `0x${toHex((await sha256(publicKey)).subarray(0, 20))}`;
}
