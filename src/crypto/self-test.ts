import { equalBytes } from "./bytes.ts";
import { CryptoError } from "./crypto-error.ts";
import type { CryptoProvider } from "./provider.ts";

/**
 * Refuses a library that would be silently insecure, such as node:crypto 24.6, which ignored the
 * context. It runs one signature and one key exchange. This takes 5 ms with OpenSSL, and 0.2 s with
 * noble, which has to start a worker first.
 *
 * @throws SELF_TEST_FAILED
 */
export async function testProvider(provider: CryptoProvider): Promise<void> {
  const passed = (await signsWithContext(provider)) && (await exchangesKeys(provider)) && hashes(provider);
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

async function exchangesKeys(provider: CryptoProvider): Promise<boolean> {
  const { publicKey, secretKey } = await provider.generateKeyPair("ML-KEM-768");
  const { ciphertext, sharedSecret } = await provider.encapsulate(publicKey);
  return equalBytes(sharedSecret, await provider.decapsulate(secretKey, ciphertext));
}

/** FIPS 180-4: the digest of "abc", from NIST's examples. */
function hashes(provider: CryptoProvider): boolean {
  const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  return provider.sha256(new TextEncoder().encode("abc")).toHex() === digest;
}
