/** The algorithms in the browser: @noble/post-quantum, loaded on first use. */
import { findMlDsa } from "../../src/client/ml-dsa.ts";

/** Verifies signatures. */
export interface BrowserSigner {
  verify(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array, context?: Uint8Array): boolean;
}

/** The library that verifies in the browser, as the page names it. */
export const browserLibrary = "@noble/post-quantum";

/** @param name a FIPS 204 or 205 parameter set in the server's spelling: "ML-DSA-65" */
export async function loadSigner(name: string): Promise<BrowserSigner> {
  const signer = await findSigner(name);
  if (signer === undefined) throw new Error(`the page does not know ${name}`);
  return {
    verify: (signature, message, publicKey, context = new Uint8Array()) => {
      try {
        return signer.verify(signature, message, publicKey, { context });
      } catch {
        // A malformed key or signature counts as not valid.
        return false;
      }
    },
  };
}

/**
 * Verifies one signature in the browser.
 *
 * @param name as for loadSigner
 */
export async function verifyHere(
  name: string,
  ...[signature, message, publicKey, context]: Parameters<BrowserSigner["verify"]>
): Promise<boolean> {
  return (await loadSigner(name)).verify(signature, message, publicKey, context);
}

/**
 * Generates a key pair and signs, all in the browser.
 *
 * @param name as for loadSigner
 * @returns the values and the duration in milliseconds
 */
export async function signHere(name: string, message: Uint8Array) {
  const signer = await findSigner(name);
  if (signer === undefined) throw new Error(`the page does not know ${name}`);
  const startedAt = performance.now();
  const { secretKey, publicKey } = signer.keygen();
  const signature = signer.sign(message, secretKey);
  return { signature, publicKey, ms: performance.now() - startedAt };
}

async function findSigner(name: string) {
  if (name.startsWith("ML-DSA")) return findMlDsa(name);
  const { slh_dsa_sha2_128f, slh_dsa_sha2_128s } = await import("@noble/post-quantum/slh-dsa.js");
  return { "SLH-DSA-SHA2-128f": slh_dsa_sha2_128f, "SLH-DSA-SHA2-128s": slh_dsa_sha2_128s }[name];
}

/** @param name a FIPS 203 parameter set such as "ML-KEM-768", or "X-Wing" */
export async function loadKem(name: string) {
  if (name === "X-Wing") return (await import("@noble/post-quantum/hybrid.js")).ml_kem768_x25519;
  const { ml_kem512, ml_kem768, ml_kem1024 } = await import("@noble/post-quantum/ml-kem.js");
  const kem = { "ML-KEM-512": ml_kem512, "ML-KEM-768": ml_kem768, "ML-KEM-1024": ml_kem1024 }[name];
  if (kem === undefined) throw new Error(`the page does not know ${name}`);
  return kem;
}

/** Computes SHA-256 without WebCrypto, which exists only on secure origins. */
export async function sha256(bytes: Uint8Array): Promise<Uint8Array> {
  const { sha256: hash } = await import("@noble/hashes/sha2.js");
  return hash(bytes);
}
