/**
 * X-Wing (draft-connolly-cfrg-xwing-kem-11), built from the ML-KEM-768 and X25519 of node:crypto, which
 * offers X-Wing only as an experiment in its Web Crypto API.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  hash,
  type KeyObject,
} from "node:crypto";
import { promisify } from "node:util";
import { kemAlgorithms } from "../algorithms.ts";
import { copyBytes, wipe } from "../bytes.ts";
import type { LibraryPublicKey, LibrarySecretKey } from "../engine.ts";
import { parsePublicKey } from "./key-objects.ts";
import { agree, decapsulate, encapsulate, plainBytes } from "./thread-pool.ts";

const mlKem768 = kemAlgorithms["ML-KEM-768"];
/** Section 5.3: the label \.//^\ ends the input of the combiner. */
const label = Uint8Array.fromHex("5c2e2f2f5e5c");

/**
 * Parses a raw key and its halves (section 5.2).
 *
 * @param raw 1216 bytes; copied
 * @throws INVALID_KEY
 */
export function openXWingPublicKey(raw: Uint8Array): LibraryPublicKey {
  const own = copyBytes(raw);
  const mlKem = parsePublicKey("ML-KEM-768", own.subarray(0, mlKem768.publicKeyBytes));
  const x25519 = parseX25519(own.subarray(mlKem768.publicKeyBytes));
  return {
    exportRaw: () => copyBytes(own),
    verify: refuseSignature,
    verifyRepresentative: refuseSignature,
    /** Section 5.4. */
    async encapsulate() {
      const [inner, ephemeral] = await Promise.all([
        encapsulate(mlKem),
        promisify(generateKeyPair)("x25519"),
      ]);
      const point = exportRaw(ephemeral.publicKey);
      const x25519Secret = await agreeX25519(ephemeral.privateKey, x25519);
      return {
        ciphertext: plainBytes(Buffer.concat([inner.ciphertext, point])),
        sharedSecret: combine(inner.sharedSecret, x25519Secret, point, own),
      };
    },
  };
}

/**
 * Expands a seed into its keys (section 5.2), which takes as long as parsing an ML-KEM-768 key.
 *
 * @param seed 32 bytes; copied
 */
export function openXWingSecretKey(seed: Uint8Array): LibrarySecretKey {
  const own = copyBytes(seed);
  const expanded = createHash("shake256", { outputLength: 96 }).update(own).digest();
  const [first, second] = [expanded.subarray(0, mlKem768.seedBytes), expanded.subarray(mlKem768.seedBytes)];
  const mlKem = createPrivateKey({ key: first, format: "raw-seed", asymmetricKeyType: "ml-kem-768" });
  const x25519 = createPrivateKey({ key: second, format: "raw-private", asymmetricKeyType: "x25519" });
  wipe(expanded);
  const publicRaw = Buffer.concat([mlKem, x25519].map((half) => exportRaw(createPublicKey(half))));
  return {
    publicKey: openXWingPublicKey(publicRaw),
    exportRaw: () => copyBytes(own),
    exportSeed: () => copyBytes(own),
    erase: () => wipe(own),
    sign: refuseSignature,
    signRepresentative: refuseSignature,
    /** Section 5.5. */
    async decapsulate(ciphertext) {
      const inner = ciphertext.subarray(0, mlKem768.ciphertextBytes);
      const point = copyBytes(ciphertext.subarray(mlKem768.ciphertextBytes));
      const [mlKemSecret, x25519Secret] = await Promise.all([
        decapsulate(mlKem, inner),
        agreeX25519(x25519, parseX25519(point)),
      ]);
      return combine(mlKemSecret, x25519Secret, point, publicRaw);
    },
  };
}

/** `CheckedProvider` never signs or verifies with KEM keys. */
async function refuseSignature(): Promise<never> {
  throw new RangeError("X-Wing keys cannot sign or verify");
}

/**
 * X25519 as defined by RFC 7748, section 5, and used by the draft: a point of low order gives zero. OpenSSL
 * fails in this case, and only in this case, because every other key of the right length is valid.
 */
async function agreeX25519(secretKey: KeyObject, publicKey: KeyObject): Promise<Uint8Array> {
  try {
    return await agree(secretKey, publicKey);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_OSSL_FAILED_DURING_DERIVATION")
      return new Uint8Array(32);
    throw error;
  }
}

/**
 * Section 5.3: SHA3-256 over both secrets, which it wipes, the X25519 ciphertext, the X25519 public key and
 * the label.
 *
 * @param publicKey the X-Wing key
 */
function combine(
  mlKemSecret: Uint8Array,
  x25519Secret: Uint8Array,
  point: Uint8Array,
  publicKey: Uint8Array,
): Uint8Array {
  const parts = [mlKemSecret, x25519Secret, point, publicKey.subarray(mlKem768.publicKeyBytes), label];
  const input = Buffer.concat(parts);
  const sharedSecret = hash("sha3-256", input, "buffer");
  wipe(input, mlKemSecret, x25519Secret);
  return plainBytes(sharedSecret);
}

function parseX25519(raw: Uint8Array): KeyObject {
  return createPublicKey({ key: raw, format: "raw-public", asymmetricKeyType: "x25519" });
}

function exportRaw(publicKey: KeyObject): Uint8Array {
  return plainBytes(publicKey.export({ format: "raw-public" }));
}
