/** Fixed key pairs and deterministic signatures, because the vectors must be reproducible. */
import { createHash } from "node:crypto";
import { p256 } from "@noble/curves/nist.js";
import { ml_kem768_x25519 } from "@noble/post-quantum/hybrid.js";
import { mlDsa, mlKem } from "../../../src/crypto/noble.ts";
import type { VectorKey } from "./vector-set.ts";

type MlDsa = "ML-DSA-44" | "ML-DSA-65" | "ML-DSA-87";

/** A key pair that signs. */
export interface SigningKey {
  readonly entry: VectorKey;
  readonly publicKey: Uint8Array;
  /** Signs the message itself; only ML-DSA uses the context. */
  sign(message: Uint8Array, context?: Uint8Array): Uint8Array;
}

/** Derives bytes from a name. */
export function fixedBytes(name: string, length: number): Uint8Array {
  return createHash("shake256", { outputLength: length })
    .update(`quantum-safe-playground test vectors: ${name}`)
    .digest();
}

/** ML-DSA, deterministic (FIPS 204, section 3.4: rnd is 32 zero bytes). Servers sign hedged; both verify alike. */
export function mlDsaKey(algorithm: MlDsa, name: string): SigningKey {
  const seed = fixedBytes(name, 32);
  const { publicKey, secretKey } = mlDsa[algorithm].keygen(seed);
  return {
    entry: { algorithm, seed: seed.toHex(), publicKey: publicKey.toHex() },
    publicKey,
    sign: (message, context = new Uint8Array()) =>
      mlDsa[algorithm].sign(message, secretKey, { context, extraEntropy: false }),
  };
}

/** ECDSA with P-256 and SHA-256, deterministic (RFC 6979), in DER. */
export function ecdsaKey(name: string): SigningKey {
  const scalar = fixedBytes(name, 32);
  const publicKey = p256.getPublicKey(scalar, false);
  return {
    entry: { algorithm: "ECDSA-P256", seed: scalar.toHex(), publicKey: publicKey.toHex() },
    publicKey,
    sign: (message) => p256.sign(message, scalar, { format: "der", lowS: false }),
  };
}

/** A key pair for key encapsulation. */
export interface KemKey {
  readonly entry: VectorKey;
  readonly publicKey: Uint8Array;
  /** Bytes that `encapsulate` takes. */
  readonly randomBytes: number;
  /** Encapsulates with fixed randomness (FIPS 203, algorithm 17, which takes the 32 bytes m). */
  encapsulate(m: Uint8Array): { readonly ciphertext: Uint8Array; readonly sharedSecret: Uint8Array };
  decapsulate(ciphertext: Uint8Array): Uint8Array;
}

/** ML-KEM. */
export function kemKey(name: string, algorithm: "ML-KEM-768" | "ML-KEM-1024" = "ML-KEM-1024"): KemKey {
  return toKemKey(algorithm, mlKem[algorithm], fixedBytes(name, 64), 32);
}

/** X-Wing (draft-connolly-cfrg-xwing-kem-11, section 5.4: 64 random bytes encapsulate). */
export function xWingKey(name: string): KemKey {
  return toKemKey("X-Wing", ml_kem768_x25519, fixedBytes(name, 32), 64);
}

function toKemKey(
  algorithm: VectorKey["algorithm"],
  kem: Pick<typeof ml_kem768_x25519, "keygen" | "encapsulate" | "decapsulate">,
  seed: Uint8Array,
  randomBytes: number,
): KemKey {
  const { publicKey, secretKey } = kem.keygen(seed);
  return {
    randomBytes,
    entry: { algorithm, seed: seed.toHex(), publicKey: publicKey.toHex() },
    publicKey,
    encapsulate(m) {
      const { cipherText: ciphertext, sharedSecret } = kem.encapsulate(publicKey, m);
      return { ciphertext, sharedSecret };
    },
    decapsulate: (ciphertext) => kem.decapsulate(ciphertext, secretKey),
  };
}
