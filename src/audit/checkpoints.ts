/** Signs the end of the audit chain with ML-DSA-65, so that others can check the store against it. */
import { wipe } from "../crypto/bytes.ts";
import { CryptoError } from "../crypto/crypto-error.ts";
import { withFreshKeyPair } from "../crypto/fresh-key-pair.ts";
import type { CryptoProvider, PublicKey } from "../crypto/provider.ts";
import type { Database } from "../database/database.ts";
import { StoreDamagedError } from "../database/store-error.ts";
import { hasBeenUsed } from "../secrets/root-keys.ts";
import { lendSecret } from "../secrets/sealed-keys.ts";
import type { Vault } from "../secrets/vault.ts";
import { type AuditHead, checkpointMessage } from "./chain.ts";
import { keyLog, type LogTables } from "./tables.ts";
import type { SignedCheckpoint } from "./verification.ts";

const algorithm = "ML-DSA-65";
const signingIdentity = "store/audit-signing-key";
const keyName = "the key that signs its audit log";

/** The store has the newest checkpoint of each span of this many entries; it covers the earlier ones. */
const spanEntries = 10_000;

/** Signs and verifies checkpoints with the store's own key. */
export interface CheckpointSigner {
  readonly publicKey: PublicKey;
  /** @param log whose end it is; the log of keys if left out */
  sign(head: AuditHead, now: Date, log?: LogTables): Promise<SignedCheckpoint>;
  verify(checkpoint: SignedCheckpoint, log?: LogTables): Promise<boolean>;
  /** Signs for another use. @param context keeps the signature apart from those of checkpoints, which have none */
  signFor(context: Uint8Array, message: Uint8Array): Promise<Uint8Array>;
}

/** Opens the store's signing key, or creates it in a new store. */
export async function openCheckpointSigner(
  { name, owners, writer }: Database,
  vault: Vault,
  provider: CryptoProvider,
): Promise<CheckpointSigner> {
  const seed = await withFreshKeyPair(provider, algorithm, ({ secretKey: fresh }) =>
    writer.transaction().execute(async (transaction) => {
      const known = await readSeed(vault, transaction, name);
      if (known !== undefined) return known;
      // A new key would silently invalidate all checkpoints that others have stored.
      if (await hasBeenUsed(transaction, owners)) throw new StoreDamagedError(name, `${keyName} is missing`);
      await lendSecret(fresh, (made) => vault.put(transaction, signingIdentity, made));
      return vault.read(transaction, signingIdentity);
    }),
  );
  if (seed === undefined) throw new Error("a secret that was just inserted is missing");
  try {
    const secretKey = await provider.importSecretKey(algorithm, { seed });
    const { publicKey } = secretKey;
    return {
      publicKey,
      async sign(head, now, { purpose } = keyLog) {
        const checkpoint = { ...head, signedAt: now };
        const message = checkpointMessage(checkpoint, purpose);
        return { ...checkpoint, signature: await provider.sign(secretKey, message) };
      },
      verify: (checkpoint, { purpose } = keyLog) =>
        provider.verify(publicKey, checkpointMessage(checkpoint, purpose), checkpoint.signature),
      async signFor(context, message) {
        if (context.length === 0)
          throw new RangeError("without a context this would be a checkpoint's signature");
        return provider.sign(secretKey, message, { context });
      },
    };
  } finally {
    wipe(seed);
  }
}

async function readSeed(vault: Vault, db: Database["writer"], name: string): Promise<Uint8Array | undefined> {
  try {
    return await vault.read(db, signingIdentity);
  } catch (error) {
    if (error instanceof CryptoError && error.code === "SEAL_BROKEN")
      throw new StoreDamagedError(name, `${keyName} was changed outside the server`);
    throw error;
  }
}

/** Stores a checkpoint within a transaction, and deletes the earlier checkpoints of its span. */
export async function storeCheckpoint(
  db: Database["writer"],
  { sequence, entryHash, signedAt, signature }: SignedCheckpoint,
  { checkpoints }: LogTables = keyLog,
): Promise<void> {
  const newer = await db
    .selectFrom(checkpoints)
    .select("sequence")
    .where("sequence", ">=", sequence)
    .limit(1)
    .executeTakeFirst();
  // Another program already stored a newer one.
  if (newer !== undefined) return;
  await db
    .deleteFrom(checkpoints)
    .where("sequence", ">", sequence - 1 - ((sequence - 1) % spanEntries))
    .execute();
  await db
    .insertInto(checkpoints)
    .values({ sequence, entry_hash: entryHash, signed_at_ms: signedAt.getTime(), signature })
    .execute();
}
