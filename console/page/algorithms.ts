/**
 * The algorithms in the browser: @noble/post-quantum, loaded on first use, and Web Cryptography where it has
 * them (WICG, Modern Algorithms in the Web Cryptography API).
 */
import { findMlDsa } from "../../src/client/ml-dsa.ts";
import { areEqual } from "./values.ts";

export const browserLibrary = "@noble/post-quantum";

/** Algorithms that Web Cryptography has computed at their last use. */
const nativeAlgorithms = new Set<string>();

/** Names the code that last computed an algorithm here: "@noble/post-quantum and Web Cryptography". */
export function nameCode(algorithm: string): string {
  return nativeAlgorithms.has(algorithm) ? `${browserLibrary} and Web Cryptography` : browserLibrary;
}

/**
 * Verifies one signature in the browser. It is valid if all code that has the algorithm finds it valid; a
 * malformed key or signature is not.
 *
 * @param name as for loadSigner
 */
export async function verifyHere(
  name: string,
  signature: Uint8Array,
  message: Uint8Array,
  publicKey: Uint8Array,
  context = new Uint8Array(),
): Promise<boolean> {
  const signer = await loadSigner(name);
  const native = await runNatively(name, async ({ subtle }) => {
    const key = await subtle.importKey(rawPublic, Uint8Array.from(publicKey), name, false, ["verify"]);
    const algorithm = { name, context };
    return subtle.verify(algorithm, key, Uint8Array.from(signature), Uint8Array.from(message));
  });
  try {
    return signer.verify(signature, message, publicKey, { context }) && native !== false;
  } catch {
    return false;
  }
}

// TypeScript does not have the formats and methods yet.
const [rawPublic, rawSeed] = ["raw-public", "raw-seed"] as unknown as readonly ["raw", "raw"];
const decapsulating = "decapsulateBits" as "decrypt";
type Decapsulating = SubtleCrypto & {
  decapsulateBits(name: string, key: CryptoKey, ciphertext: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer>;
};

/** @returns undefined if Web Cryptography cannot: the algorithm is unknown to it, or the origin insecure */
async function runNatively<T>(name: string, compute: (crypto: Crypto) => Promise<T>): Promise<T | undefined> {
  try {
    const result = await compute(crypto);
    nativeAlgorithms.add(name);
    return result;
  } catch {
    nativeAlgorithms.delete(name);
    return undefined;
  }
}

/**
 * Generates a key pair and signs, all in the browser.
 *
 * @param name as for loadSigner
 * @returns the values and the duration in milliseconds
 */
export async function signHere(name: string, message: Uint8Array) {
  const signer = await loadSigner(name);
  const startedAt = performance.now();
  const { secretKey, publicKey } = signer.keygen();
  const signature = signer.sign(message, secretKey);
  return { signature, publicKey, ms: performance.now() - startedAt };
}

/** @param name a FIPS 204 or 205 parameter set in the server's spelling: "ML-DSA-65" */
export async function loadSigner(name: string) {
  const signer = name.startsWith("ML-DSA") ? await findMlDsa(name) : await findSlhDsa(name);
  if (signer === undefined) throw new Error(`the page does not know ${name}`);
  return signer;
}

async function findSlhDsa(name: string) {
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

/**
 * Opens a ciphertext in the browser.
 *
 * @param name as for loadKem
 * @param seed what the key pair was generated from (FIPS 203, algorithm 16: d ‖ z)
 * @returns the shared secret, the same from all code that has the algorithm
 */
export async function decapsulateHere(
  name: string,
  seed: Uint8Array,
  secretKey: Uint8Array,
  ciphertext: Uint8Array,
): Promise<Uint8Array> {
  const secret = (await loadKem(name)).decapsulate(ciphertext, secretKey);
  const algorithm = name === "X-Wing" ? "MLKEM768-X25519" : name;
  const native = await runNatively(name, async ({ subtle }) => {
    const key = await subtle.importKey(rawSeed, Uint8Array.from(seed), algorithm, false, [decapsulating]);
    const bits = (subtle as Decapsulating).decapsulateBits(algorithm, key, Uint8Array.from(ciphertext));
    return new Uint8Array(await bits);
  });
  if (native !== undefined && !areEqual(native, secret))
    throw new Error(`Web Cryptography and ${browserLibrary} compute different secrets`);
  return secret;
}

/** Computes SHA-256 without WebCrypto, which exists only on secure origins. */
export async function sha256(bytes: Uint8Array): Promise<Uint8Array> {
  const { sha256: hash } = await import("@noble/hashes/sha2.js");
  return hash(bytes);
}
