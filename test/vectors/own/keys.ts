/** Fixed key pairs and deterministic signatures, for reproducible vectors. */
import { createHash } from "node:crypto";
import { mlDsa, mlKem } from "../../../src/crypto/noble.ts";
import type { VectorKey } from "./vector-set.ts";

type MlDsa = "ML-DSA-44" | "ML-DSA-65" | "ML-DSA-87";

/** A key pair that signs. */
export interface SigningKey {
  readonly entry: VectorKey;
  readonly publicKey: Uint8Array;
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

/** A key pair for key encapsulation. */
export interface KemKey {
  readonly entry: VectorKey;
  readonly publicKey: Uint8Array;
  /** Encapsulates with fixed randomness (FIPS 203, algorithm 17, which takes the 32 bytes m). */
  encapsulate(m: Uint8Array): { readonly ciphertext: Uint8Array; readonly sharedSecret: Uint8Array };
  decapsulate(ciphertext: Uint8Array): Uint8Array;
}

/** ML-KEM-1024. */
export function kemKey(name: string): KemKey {
  const seed = fixedBytes(name, 64);
  const kem = mlKem["ML-KEM-1024"];
  const { publicKey, secretKey } = kem.keygen(seed);
  return {
    entry: { algorithm: "ML-KEM-1024", seed: seed.toHex(), publicKey: publicKey.toHex() },
    publicKey,
    encapsulate(m) {
      const { cipherText: ciphertext, sharedSecret } = kem.encapsulate(publicKey, m);
      return { ciphertext, sharedSecret };
    },
    decapsulate: (ciphertext) => kem.decapsulate(ciphertext, secretKey),
  };
}
