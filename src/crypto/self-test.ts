import { hash } from "node:crypto";
import { type KemAlgorithm, kemAlgorithms } from "./algorithms.ts";
import { equalBytes } from "./bytes.ts";
import { CryptoError } from "./crypto-error.ts";
import type { CryptoProvider } from "./provider.ts";

/**
 * Rejects a library that would be silently insecure, such as node:crypto 24.6, which ignored the context.
 * Runs one signature and two key exchanges, which takes 5 ms.
 *
 * @throws SELF_TEST_FAILED
 */
export async function testProvider(provider: CryptoProvider): Promise<void> {
  const passed =
    (await signsWithContext(provider)) &&
    (await exchangesKeys(provider, "ML-KEM-768")) &&
    (await exchangesKeys(provider, "X-Wing")) &&
    (await knowsXWing(provider));
  if (!passed) throw new CryptoError("SELF_TEST_FAILED", `${provider.version} failed the self-test`);
}

async function signsWithContext(provider: CryptoProvider): Promise<boolean> {
  const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-65");
  const message = Uint8Array.of(1, 2, 3);
  const context = Uint8Array.of(4);
  const signature = await provider.sign(secretKey, message, { context });
  const withContext = await provider.verify(publicKey, message, signature, { context });
  const withoutContext = await provider.verify(publicKey, message, signature);
  const otherMessage = await provider.verify(publicKey, context, signature, { context });
  return withContext && !withoutContext && !otherMessage;
}

async function exchangesKeys(provider: CryptoProvider, algorithm: KemAlgorithm): Promise<boolean> {
  const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
  const { ciphertext, sharedSecret } = await provider.encapsulate(publicKey);
  return equalBytes(sharedSecret, await provider.decapsulate(secretKey, ciphertext));
}

/**
 * Known answer for SHA-256 and X-Wing, of which the library implements only the halves: the key from the seed 0, 1, … 31,
 * and the secret from a ciphertext of nines, which ML-KEM rejects implicitly.
 */
async function knowsXWing(provider: CryptoProvider): Promise<boolean> {
  const seed = Uint8Array.from({ length: 32 }, (_, i) => i);
  const secretKey = await provider.importSecretKey("X-Wing", { seed });
  const ciphertext = new Uint8Array(kemAlgorithms["X-Wing"].ciphertextBytes).fill(9);
  const sharedSecret = await provider.decapsulate(secretKey, ciphertext);
  const known = hash("sha256", Buffer.concat([secretKey.publicKey.exportRaw(), sharedSecret]));
  return known === "2c75939ea161d2d6f3e6f9705005c3d6ee790c1a9cf464ed8aafda2b049277f2";
}
