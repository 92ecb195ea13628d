/** Signs the end of the audit chain with ML-DSA-65, so that third parties can check the store against it. */
import { wipe } from "../crypto/bytes.ts";
import { withFreshKeyPair } from "../crypto/fresh-key-pair.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "../crypto/provider.ts";
import type { Database } from "../database/database.ts";
import { toRow } from "../records/columns.ts";
import { openOwnSecret } from "../secrets/root-keys.ts";
import { lendSecret } from "../secrets/sealed-keys.ts";
import type { Vault } from "../secrets/vault.ts";
import { type AuditHead, checkpointMessage } from "./chain.ts";
import { checkpointColumns, keyLog, type LogTables } from "./tables.ts";
import type { SignedCheckpoint } from "./verification.ts";

const algorithm = "ML-DSA-65";
const signingIdentity = "store/audit-signing-key";

/** The store keeps the newest checkpoint of each span of this many entries; it covers the earlier ones. */
const spanEntries = 10_000;

/** Signs and verifies checkpoints with the store's own key. */
export interface CheckpointSigner {
  readonly publicKey: PublicKey;
  /** @param log the log that the end belongs to; default: the key log */
  sign(head: AuditHead, now: Date, log?: LogTables): Promise<SignedCheckpoint>;
  verify(checkpoint: SignedCheckpoint, log?: LogTables): Promise<boolean>;
  /**
   * Signs for a different purpose.
   *
   * @param context distinguishes the signature from checkpoint signatures, which have no context
   */
  signFor(context: Uint8Array, message: Uint8Array): Promise<Uint8Array>;
}

/** Opens the store's signing key, or creates it in a new store. */
export async function openCheckpointSigner(
  database: Database,
  vault: Vault,
  provider: CryptoProvider,
): Promise<CheckpointSigner> {
  const copySeed = (secretKey: SecretKey) => lendSecret(secretKey, async (seed) => Uint8Array.from(seed));
  const seed = await openOwnSecret(database, vault, {
    identity: signingIdentity,
    noun: "the key that signs its audit log",
    make: () => withFreshKeyPair(provider, algorithm, ({ secretKey }) => copySeed(secretKey)),
  });
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
          throw new RangeError("without a context, this would be a checkpoint signature");
        return provider.sign(secretKey, message, { context });
      },
    };
  } finally {
    wipe(seed);
  }
}

/** Stores a checkpoint within a transaction and deletes earlier checkpoints of its span. */
export async function storeCheckpoint(
  db: Database["writer"],
  checkpoint: SignedCheckpoint,
  { checkpoints }: LogTables = keyLog,
): Promise<void> {
  const { sequence } = checkpoint;
  const newer = await db
    .selectFrom(checkpoints)
    .select("sequence")
    .where("sequence", ">=", sequence)
    .limit(1)
    .executeTakeFirst();
  // Another program has already stored a newer one.
  if (newer !== undefined) return;
  await db
    .deleteFrom(checkpoints)
    .where("sequence", ">", sequence - 1 - ((sequence - 1) % spanEntries))
    .execute();
  await db.insertInto(checkpoints).values(toRow(checkpointColumns, checkpoint)).execute();
}
