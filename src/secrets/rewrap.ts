/** Rotates a store's master key. Ciphertexts stay the same; their data keys are rewrapped. */
import { CryptoError } from "../crypto/crypto-error.ts";
import { nameMasterKey, rewrapSecret } from "../crypto/sealing.ts";
import type { Database } from "../database/database.ts";
import { countRows } from "../database/read-rows.ts";
import { StorageError } from "../database/store-error.ts";
import {
  createKeyFile,
  type Keyring,
  type MasterKeySource,
  nextKeyPath,
  openKeyring,
  readKeyFile,
  readPreviousKeys,
  replaceKeyFile,
} from "./master-key.ts";
import { countByMasterKey, type SecretsUnderKey } from "./master-keys-in-use.ts";
import type { SealedSecretsTable } from "./tables.ts";
import { rootIdentity } from "./vault.ts";

/** Secrets to rewrap per transaction. */
const chunkRows = 500;

export interface Rewrapped {
  /** Secrets that this run moved to the new master key. */
  readonly moved: number;
  /** All secrets under the new key: an earlier run may have moved some, and running servers add more. */
  readonly underNewKey: number;
  /** Identities of secrets that do not open although their key is available; they are left unchanged. */
  readonly damaged: readonly string[];
  /** Secrets whose master key is not available; they are left unchanged. */
  readonly outOfReach: readonly SecretsUnderKey[];
  readonly masterKeyId: string;
}

/**
 * Moves every secret to a new master key. It can be interrupted at any moment and restarted: both keys stay
 * available until the last secret is moved, and each secret records its key. Servers may keep running.
 *
 * @param source of the current key; for a file, the next key is created next to it and finally replaces it
 * @throws StorageError with a sentence for the operator
 */
export async function rewrapStore(
  database: Database,
  source: MasterKeySource,
  onProgress: (moved: number, total: number) => void,
): Promise<Rewrapped> {
  const keyring = openKeyring(source, false);
  await requireRoot(database, keyring);
  const next = findNextKey(source);
  const masterKeyId = nameMasterKey(next);
  if (masterKeyId === nameMasterKey(keyring.current))
    throw new StorageError("the next master key must differ from the current one");
  // The root moves first, because it determines which key all programs use for new secrets.
  let moved = (await moveRoot(database, keyring, next)) ? 1 : 0;
  const others = database.reader.selectFrom("sealed_secrets").where("master_key_id", "!=", masterKeyId);
  const total = moved + (await countRows(others));
  const damaged: string[] = [];
  const wider = withPreviousKeys(keyring, source);
  let seen = moved;
  let after = "";
  for (;;) {
    const chunk = await moveChunk(database, wider, next, after);
    damaged.push(...chunk.damaged);
    moved += chunk.moved;
    seen += chunk.seen;
    onProgress(seen, total);
    if (chunk.last === undefined) break;
    after = chunk.last;
  }
  if (source.kind === "file") await finish(database, source.path, next);
  const counts = await countByMasterKey(database.reader);
  return {
    moved,
    underNewKey: counts.find((count) => count.masterKeyId === masterKeyId)?.secrets ?? 0,
    damaged,
    outOfReach: counts.filter((count) => wider.find(count.masterKeyId) === undefined),
    masterKeyId,
  };
}

/**
 * Adds the previous keys that are still in their files. A secret that an earlier rotation could not move may
 * have been repaired since.
 */
function withPreviousKeys(keyring: Keyring, source: MasterKeySource): Keyring {
  if (source.kind === "values") return keyring;
  const previous = readPreviousKeys(source.path);
  return { ...keyring, find: (masterKeyId) => keyring.find(masterKeyId) ?? previous.get(masterKeyId) };
}

async function readRoot(name: string, db: Database["reader"]) {
  const root = await db
    .selectFrom("sealed_secrets")
    .selectAll()
    .where("identity", "=", rootIdentity)
    .executeTakeFirst();
  if (root === undefined)
    throw new StorageError(`the store ${name} was never used; start a server with it first`);
  return root;
}

async function requireRoot({ name, reader }: Database, keyring: Keyring): Promise<void> {
  const root = await readRoot(name, reader);
  if (keyring.find(root.master_key_id) === undefined)
    throw new StorageError(`the master key is not the one that sealed the store ${name}`);
}

/** Runs within the single write transaction, so that only one of two rotations installs its key. */
async function finish({ writer }: Database, path: string, next: Uint8Array): Promise<void> {
  await writer.transaction().execute(async () => {
    const waiting = readKeyFile(nextKeyPath(path));
    if (waiting !== undefined && nameMasterKey(waiting) === nameMasterKey(next)) return replaceKeyFile(path);
    const present = readKeyFile(path);
    if (present === undefined || nameMasterKey(present) !== nameMasterKey(next))
      throw new StorageError(`another rotation of ${path} is in progress; run this command again later`);
  });
}

function findNextKey(source: MasterKeySource): Uint8Array {
  if (source.kind === "file") {
    const path = nextKeyPath(source.path);
    // Call this even for an existing file: its creator may have been killed before the name was on disk.
    const next = createKeyFile(path);
    if (next === undefined) throw new StorageError(`the next master key ${path} has disappeared`);
    return next;
  }
  if (source.next === undefined)
    throw new StorageError(
      `${source.settings.next} is not set; first set it to the new master key for every server`,
    );
  return Buffer.from(source.next, "hex");
}

/** @returns false if it was already moved */
async function moveRoot({ name, writer }: Database, keyring: Keyring, next: Uint8Array): Promise<boolean> {
  return writer.transaction().execute(async (db) => {
    const root = await readRoot(name, db);
    if (root.master_key_id === nameMasterKey(next)) return false;
    if ((await move(db, keyring, next, root)) !== "moved")
      throw new StorageError(`the master key is not the one that sealed the store ${name}`);
    return true;
  });
}

/**
 * Moves some secrets, in identity order.
 *
 * @returns counts, and the last identity, if any
 */
async function moveChunk(
  { writer }: Database,
  keyring: Keyring,
  next: Uint8Array,
  after: string,
): Promise<{ seen: number; moved: number; damaged: string[]; last: string | undefined }> {
  return writer.transaction().execute(async (db) => {
    const rows = await db
      .selectFrom("sealed_secrets")
      .selectAll()
      .where("master_key_id", "!=", nameMasterKey(next))
      .where("identity", ">", after)
      .orderBy("identity")
      .limit(chunkRows)
      .execute();
    const damaged: string[] = [];
    let moved = 0;
    for (const row of rows) {
      const outcome = await move(db, keyring, next, row);
      if (outcome === "moved") moved += 1;
      if (outcome === "damaged") damaged.push(row.identity);
    }
    return { seen: rows.length, moved, damaged, last: rows.at(-1)?.identity };
  });
}

async function move(
  db: Database["writer"],
  keyring: Keyring,
  next: Uint8Array,
  { identity, master_key_id, wrapped_data_key, ciphertext }: SealedSecretsTable,
): Promise<"moved" | "damaged" | "out of reach"> {
  const old = keyring.find(master_key_id);
  if (old === undefined) return "out of reach";
  try {
    const sealed = { masterKeyId: master_key_id, wrappedDataKey: wrapped_data_key, ciphertext };
    const { masterKeyId, wrappedDataKey } = rewrapSecret(old, next, identity, sealed);
    await db
      .updateTable("sealed_secrets")
      .set({ master_key_id: masterKeyId, wrapped_data_key: wrappedDataKey })
      .where("identity", "=", identity)
      .execute();
    return "moved";
  } catch (error) {
    if (error instanceof CryptoError && error.code === "SEAL_BROKEN") return "damaged";
    throw error;
  }
}
