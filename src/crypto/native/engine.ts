import { isMlDsaAlgorithm, isMlKemAlgorithm } from "../algorithms.ts";
import { invalidKey } from "../crypto-error.ts";
import type {
  Engine,
  EngineAlgorithm,
  LibraryPublicKey,
  LibrarySecretKey,
  SecretKeyForm,
} from "../engine.ts";
import { verifyMu } from "../noble.ts";
import { createOpenSslEngine } from "../openssl/engine.ts";
import type { NativeAddon, NativeAlgorithm, NativePublicKey, NativeSecretKey } from "./addon.ts";

const noContext = new Uint8Array();

/**
 * An engine that uses AWS-LC (`native/`) for ML-DSA and ML-KEM and the OpenSSL engine for everything else.
 * Both libraries run in libuv's thread pool, one job per operation.
 */
export function createNativeEngine(addon: NativeAddon): Engine {
  const openssl = createOpenSslEngine();
  const cpuPath = addon.cpuPath();
  return {
    ...openssl,
    name: "native",
    version: `AWS-LC ${addon.libraryVersion()} (${cpuPath}), ${openssl.version}`,
    cpuPath,
    generateKeyPair: async (algorithm) =>
      isNative(algorithm)
        ? openSecretKey(algorithm, await addon.generateKeyPair(algorithm))
        : openssl.generateKeyPair(algorithm),
    importPublicKey: (algorithm, raw) =>
      isNative(algorithm)
        ? openPublicKey(algorithm, addon.importPublicKey(algorithm, raw))
        : openssl.importPublicKey(algorithm, raw),
    importSecretKey: (algorithm, form) =>
      isNative(algorithm)
        ? importSecretKey(addon, algorithm, form)
        : openssl.importSecretKey(algorithm, form),
  };
}

function isNative(algorithm: EngineAlgorithm): algorithm is NativeAlgorithm {
  return isMlDsaAlgorithm(algorithm) || isMlKemAlgorithm(algorithm);
}

async function importSecretKey(
  addon: NativeAddon,
  algorithm: NativeAlgorithm,
  form: SecretKeyForm,
): Promise<LibrarySecretKey> {
  const seed = form.kind === "raw" ? undefined : form.seed;
  const expanded = form.kind === "seed" ? undefined : form.raw;
  const key = await addon.importSecretKey(algorithm, seed, expanded);
  if (key !== null) return openSecretKey(algorithm, key);
  throw invalidKey(`AWS-LC rejects the ${algorithm} secret key: its parts are out of range or inconsistent`);
}

function openPublicKey(algorithm: NativeAlgorithm, key: NativePublicKey): LibraryPublicKey {
  return {
    exportRaw: () => key.export(),
    verify: (message, signature, { context = noContext }) => key.verify(message, signature, context),
    verifyRepresentative: async (mu, signature) => verifyMu(algorithm, key.export(), mu, signature),
    async encapsulate() {
      const [ciphertext, sharedSecret] = await key.encapsulate();
      return { ciphertext, sharedSecret };
    },
  };
}

function openSecretKey(algorithm: NativeAlgorithm, key: NativeSecretKey): LibrarySecretKey {
  return {
    publicKey: openPublicKey(algorithm, key.publicKey()),
    exportRaw: () => key.exportExpanded(),
    exportSeed: () => key.exportSeed() ?? undefined,
    erase: () => key.erase(),
    sign: (message, { context = noContext }) => key.sign(message, context),
    signRepresentative: (mu) => key.signMu(mu),
    decapsulate: (ciphertext) => key.decapsulate(ciphertext),
  };
}
