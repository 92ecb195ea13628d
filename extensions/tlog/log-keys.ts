/** The keys that sign a log's checkpoints. */
import { wipe } from "../../src/crypto/bytes.ts";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { createServiceSecrets, type ServiceSecret } from "../../src/secrets/service-secrets.ts";
import type { Store } from "../../src/store/store.ts";
import {
  createEd25519Signer,
  createMlDsa44Signer,
  createMlDsa65Signer,
  importEd25519Seed,
  type NoteSigner,
} from "./sign-notes.ts";
import { listLogSeeds } from "./tables.ts";

/**
 * Opens a log's signers, or creates their keys. If several programs start at once, only one creates them.
 *
 * - Ed25519, which c2sp.org/tlog-tiles requires of public logs and current clients verify.
 * - ML-DSA-44, which c2sp.org/tlog-checkpoint recommends.
 * - ML-DSA-65 with the store's key, which signs the other checkpoints too.
 *
 * @param origin the name of the log and its keys
 * @throws RecordDamagedError if a key was modified, or is missing although it has signed: a new key would
 *   silently invalidate what readers have stored
 */
export async function openLogSigners(
  store: Store,
  provider: CryptoProvider,
  { log, origin }: { readonly log: string; readonly origin: string },
): Promise<readonly NoteSigner[]> {
  const seeds = listLogSeeds(log);
  await createServiceSecrets(store, seeds);
  const ed25519 = await withSeed(store, seeds.ed25519, async (seed) => importEd25519Seed(seed));
  const mlDsa44 = await withSeed(store, seeds.mlDsa44, (seed) =>
    provider.importSecretKey("ML-DSA-44", { seed }),
  );
  return [
    createEd25519Signer(origin, ed25519),
    createMlDsa44Signer(origin, provider.system, mlDsa44),
    createMlDsa65Signer(origin, store.checkpointKey.exportRaw(), (message, context) =>
      store.signFor(context, message),
    ),
  ];
}

async function withSeed<T>(
  store: Store,
  { identity, record }: ServiceSecret,
  use: (seed: Uint8Array) => Promise<T>,
): Promise<T> {
  try {
    const seed = await store.readSecret(identity);
    if (seed === undefined) throw new RecordDamagedError(record);
    try {
      return await use(seed);
    } finally {
      wipe(seed);
    }
  } catch (error) {
    if (error instanceof CryptoError && error.code !== "CLOSED") throw new RecordDamagedError(record, error);
    throw error;
  }
}
