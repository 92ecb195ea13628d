import { type Algorithm, isMlDsaAlgorithm, isMlKemAlgorithm } from "../algorithms.ts";
import { invalidKey } from "../crypto-error.ts";
import type { Engine, SecretKeyForm } from "../engine.ts";
import {
  createOpenSslEngine,
  type OpenSslPublicHandle,
  type OpenSslSecretHandle,
} from "../openssl/engine.ts";
import type { NativeAddon, NativeAlgorithm, NativePublicKey, NativeSecretKey } from "./addon.ts";

type PublicHandle = NativePublicKey | OpenSslPublicHandle;
type SecretHandle = NativeSecretKey | OpenSslSecretHandle;

const noContext = new Uint8Array();

/**
 * The engine over AWS-LC (`native/`) for ML-DSA and ML-KEM. The engine of OpenSSL does the rest. Both libraries run in
 * libuv's thread pool, one job for each operation.
 */
export function createNativeEngine(addon: NativeAddon): Engine<PublicHandle, SecretHandle> {
  const openssl = createOpenSslEngine();
  const cpuPath = addon.cpuPath();

  function isNativeSecret(key: SecretHandle): key is NativeSecretKey {
    return key instanceof addon.SecretKey;
  }
  function isNativePublic(key: PublicHandle): key is NativePublicKey {
    return key instanceof addon.PublicKey;
  }

  return {
    name: "native",
    version: `AWS-LC ${addon.libraryVersion()} (${cpuPath}), ${openssl.version}`,
    cpuPath,

    generateKeyPair: (algorithm) =>
      isNative(algorithm) ? addon.generateKeyPair(algorithm) : openssl.generateKeyPair(algorithm),
    importPublicKey: (algorithm, raw) =>
      isNative(algorithm) ? addon.importPublicKey(algorithm, raw) : openssl.importPublicKey(algorithm, raw),
    importSecretKey: (algorithm, form) =>
      isNative(algorithm)
        ? importSecretKey(addon, algorithm, form)
        : openssl.importSecretKey(algorithm, form),
    publicHalf: (key) => (isNativeSecret(key) ? key.publicKey() : openssl.publicHalf(key)),

    exportPublicKey: (key) => (isNativePublic(key) ? key.export() : openssl.exportPublicKey(key)),
    exportSecretKey: (algorithm, key) =>
      isNativeSecret(key) ? key.exportExpanded() : openssl.exportSecretKey(algorithm, key),
    exportSeed: (algorithm, key) =>
      isNativeSecret(key) ? (key.exportSeed() ?? undefined) : openssl.exportSeed(algorithm, key),
    eraseSecretKey: (key) => (isNativeSecret(key) ? key.erase() : openssl.eraseSecretKey(key)),

    sign: (algorithm, key, message, options) =>
      isNativeSecret(key)
        ? key.sign(message, options.context ?? noContext)
        : openssl.sign(algorithm, key, message, options),
    signMu: (algorithm, key, mu) =>
      isNativeSecret(key) ? key.signMu(mu) : openssl.signMu(algorithm, key, mu),
    verify: (algorithm, key, message, signature, options) =>
      isNativePublic(key)
        ? key.verify(message, signature, options.context ?? noContext)
        : openssl.verify(algorithm, key, message, signature, options),
    async encapsulate(algorithm, key) {
      if (!isNativePublic(key)) return openssl.encapsulate(algorithm, key);
      const [ciphertext, sharedSecret] = await key.encapsulate();
      return { ciphertext, sharedSecret };
    },
    decapsulate: (algorithm, key, ciphertext) =>
      isNativeSecret(key) ? key.decapsulate(ciphertext) : openssl.decapsulate(algorithm, key, ciphertext),

    sha256: openssl.sha256,
    startShake256: openssl.startShake256,
    close: openssl.close,
  };
}

function isNative(algorithm: Algorithm): algorithm is NativeAlgorithm {
  return isMlDsaAlgorithm(algorithm) || isMlKemAlgorithm(algorithm);
}

async function importSecretKey(
  addon: NativeAddon,
  algorithm: NativeAlgorithm,
  form: SecretKeyForm,
): Promise<NativeSecretKey> {
  const seed = form.kind === "raw" ? undefined : form.seed;
  const expanded = form.kind === "seed" ? undefined : form.raw;
  const key = await addon.importSecretKey(algorithm, seed, expanded);
  if (key !== null) return key;
  throw invalidKey(
    `AWS-LC refuses the ${algorithm} secret key: its parts are out of range or contradict each other`,
  );
}
