/**
 * X-Wing (draft-connolly-cfrg-xwing-kem-11) of the noble library. Only worker threads load this file, because an
 * operation takes 1 to 3 ms.
 */
import { x25519 } from "@noble/curves/ed25519.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { sha3_256, shake256 } from "@noble/hashes/sha3.js";
import { _ecdhKem, combineKEMS, expandSeedXof } from "@noble/post-quantum/hybrid.js";
import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
import type { KEM } from "@noble/post-quantum/utils.js";
import { equalBytes, wipe } from "../bytes.ts";
import { CryptoError } from "../crypto-error.ts";

/** Section 5.3: the label \.//^\ ends the input of the combiner. */
const label = Uint8Array.fromHex("5c2e2f2f5e5c");

/**
 * X25519 as RFC 7748, section 5, defines it, which is what the draft uses. The library refuses a point of low order,
 * whose result is zero. Lengths are right here, so it refuses nothing else.
 */
const plainX25519: typeof x25519 = {
  ...x25519,
  getSharedSecret(secretKey, publicKey) {
    try {
      return x25519.getSharedSecret(secretKey, publicKey);
    } catch {
      return new Uint8Array(32);
    }
  },
};

/**
 * The library composes X-Wing from the same parts as `ml_kem768_x25519`, but refuses points of low order. The secret key
 * is the seed, and every decapsulation expands it again (section 5.5).
 */
const xWing: KEM = combineKEMS(32, 32, expandSeedXof(shake256), combine, ml_kem768, _ecdhKem(plainX25519));

/** Section 5.3: SHA3-256 over both secrets, the X25519 ciphertext, the X25519 public key and the label. */
function combine(
  [, publicKey = new Uint8Array()]: readonly Uint8Array[],
  [, ciphertext = new Uint8Array()]: readonly Uint8Array[],
  sharedSecrets: readonly Uint8Array[],
): Uint8Array<ArrayBuffer> {
  const hash = sha3_256.create();
  for (const part of [...sharedSecrets, ciphertext, publicKey, label]) hash.update(part);
  return Uint8Array.from(hash.digest());
}

let tested: KEM | undefined;

/** Returns X-Wing, which each thread tests once, before its first use. @throws SELF_TEST_FAILED */
export function findXWing(): KEM {
  tested ??= testXWing(xWing);
  return tested;
}

/** The seed and the encapsulation randomness of the first test vector of the draft. */
const knownSeed = Uint8Array.fromHex("7f9c2ba4e88f827d616045507605853ed73b8093f6efbc88eb1a6eacfa66ef26");
const knownRandomness = Uint8Array.fromHex(
  "3cb1eea988004b93103cfb0aeefd2a686e01fa4a58e8a3639ca8a1e3f9ae57e2" +
    "35b8cc873c23dc62b8d260169afa2f75ab916a58d974918835d25e6a435085b2",
);
/** SHA-256 over the public key, the ciphertext and the shared secret of that vector. */
const knownDigest = "c2f4c2fdda6784454063b54c554d7fa58c08c1a09b354bb00503925eb34c7541";

/** Returns a KEM that gives the known answer of X-Wing. @throws SELF_TEST_FAILED */
export function testXWing(kem: KEM): KEM {
  const { publicKey } = kem.keygen(Uint8Array.from(knownSeed));
  const { cipherText, sharedSecret } = kem.encapsulate(publicKey, knownRandomness);
  const decapsulated = kem.decapsulate(cipherText, knownSeed);
  const digest = sha256.create().update(publicKey).update(cipherText).update(sharedSecret).digest().toHex();
  const passed = digest === knownDigest && equalBytes(decapsulated, sharedSecret);
  wipe(sharedSecret, decapsulated);
  if (passed) return kem;
  throw new CryptoError("SELF_TEST_FAILED", "@noble/post-quantum gave a wrong known answer for X-Wing");
}
