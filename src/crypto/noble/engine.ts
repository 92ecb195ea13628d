import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { p256 } from "@noble/curves/nist.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { shake256 } from "@noble/hashes/sha3.js";
import { copyBytes, wipe } from "../bytes.ts";
import { CryptoError } from "../crypto-error.ts";
import type { Engine } from "../engine.ts";
import type { NobleKeyPair } from "./operations.ts";
import { WorkerPool } from "../openssl/mu-workers.ts";

/**
 * The engine over @noble/post-quantum and @noble/curves: plain JavaScript, which does not guarantee
 * constant time. Its operations take from a millisecond to seconds, so they run on worker threads,
 * at most one for each core.
 */
export function createNobleEngine(): Engine<Uint8Array, NobleKeyPair> {
  const pool = new WorkerPool(availableParallelism());
  return {
    name: "noble",
    version: `@noble/post-quantum ${installedVersion()}`,

    generateKeyPair: (algorithm) => pool.run("generateKeyPair", { algorithm }),

    importPublicKey(algorithm, raw) {
      if (algorithm === "ECDSA-P256" && !p256.utils.isValidPublicKey(raw, false)) {
        throw new CryptoError("INVALID_KEY", "the ECDSA-P256 public key is not a point on the curve");
      }
      return copyBytes(raw);
    },

    importSecretKey: (algorithm, form) => pool.run("importSecretKey", { algorithm, form }),
    publicHalf: (secretKey) => secretKey.publicKey,
    exportPublicKey: (publicKey) => copyBytes(publicKey),
    exportSecretKey: (_algorithm, { raw }) => copyBytes(raw),
    exportSeed: (_algorithm, { seed }) => seed && copyBytes(seed),
    eraseSecretKey: ({ raw, seed }) => wipe(raw, seed),

    sign: (algorithm, { raw }, message, options) =>
      pool.run("sign", { algorithm, secretKey: raw, message, ...options }),
    signMu: (algorithm, { raw }, mu) =>
      pool.run("signMu", { algorithm, secretKey: { kind: "raw", raw }, mu }),
    verify: (algorithm, publicKey, message, signature, options) =>
      pool.run("verify", { algorithm, publicKey, message, signature, ...options }),
    encapsulate: (algorithm, publicKey) => pool.run("encapsulate", { algorithm, publicKey }),
    decapsulate: (algorithm, { raw }, ciphertext) =>
      pool.run("decapsulate", { algorithm, secretKey: raw, ciphertext }),

    sha256,
    startShake256: (outputBytes) => shake256.create({ dkLen: outputBytes }),
    close: () => pool.close(),
  };
}

/** The package does not export its package.json, so we read the file beside its modules. */
function installedVersion(): string {
  const modulePath = createRequire(import.meta.url).resolve("@noble/post-quantum/ml-dsa.js");
  const manifest: unknown = JSON.parse(readFileSync(new URL("package.json", `file://${modulePath}`), "utf8"));
  if (typeof manifest === "object" && manifest !== null && "version" in manifest)
    return String(manifest.version);
  throw new Error("@noble/post-quantum has no version");
}
