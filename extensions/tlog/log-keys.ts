/** The keys that sign a log's checkpoints. */
import { randomBytes } from "node:crypto";
import { wipe } from "../../src/crypto/bytes.ts";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import type { Store } from "../../src/store/store.ts";
import {
  createEd25519Signer,
  createMlDsa44Signer,
  createMlDsa65Signer,
  importEd25519Seed,
  type NoteSigner,
} from "./sign-notes.ts";

/** Seed sizes in bytes: Ed25519 (RFC 8032, section 5.1.5) and ML-DSA (FIPS 204, algorithm 1). */
const seedBytes = 32;

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
  const ed25519 = await withSeed(store, log, "ed25519", async (seed) => importEd25519Seed(seed));
  const mlDsa44 = await withSeed(store, log, "ml-dsa-44", (seed) =>
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
  log: string,
  kind: string,
  use: (seed: Uint8Array) => Promise<T>,
): Promise<T> {
  const identity = `tlog/${log}/${kind}`;
  const record = `${kind} key of the log ${log}`;
  try {
    const seed = (await store.readSecret(identity)) ?? (await makeSeed(store, log, identity));
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

async function makeSeed(store: Store, log: string, identity: string): Promise<Uint8Array | undefined> {
  const fresh = randomBytes(seedBytes);
  try {
    await store.write(async ({ db, readSecret, putSecret }) => {
      const hasSigned = await db
        .selectFrom("tlog_checkpoints")
        .select("tree_size")
        .where("log", "=", log)
        .limit(1)
        .executeTakeFirst();
      if (hasSigned !== undefined) return;
      const known = await readSecret(identity);
      if (known === undefined) await putSecret(identity, fresh);
      else wipe(known);
    });
  } finally {
    wipe(fresh);
  }
  return store.readSecret(identity);
}
