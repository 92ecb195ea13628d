/** Wraps keys for import, like a caller. */
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { isWrappingMethod, wrap } from "../../src/crypto/hpke.ts";

/** The answer of GetImportParameters. */
export interface ImportParameters {
  readonly publicKey: Uint8Array;
  readonly importToken: string;
  readonly algorithm: string;
}

/**
 * Wraps a key file.
 *
 * @returns the ImportKey fields that carry it
 */
export async function wrapKeyFile(
  { publicKey, importToken, algorithm }: ImportParameters,
  file: Uint8Array,
): Promise<{ readonly importToken: string; readonly wrappedKey: Uint8Array }> {
  if (!isWrappingMethod(algorithm)) throw new Error(`unknown wrapping algorithm ${algorithm}`);
  const provider = await createCryptoProvider("openssl");
  try {
    return { importToken, wrappedKey: await wrap(provider, algorithm, publicKey, file) };
  } finally {
    await provider.close();
  }
}
