/** Changes the master key of a store. Ciphertexts stay; the keys that they are under are wrapped anew. */
import { closeSync, fsyncSync, openSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { CryptoError } from "../crypto/crypto-error.ts";
import { masterKeyIdOf, rewrapSecret } from "../crypto/sealing.ts";
import type { Database } from "./database.ts";
import {
  createKeyFile,
  type Keyring,
  type MasterKeySource,
  nextKeyPath,
  openKeyring,
  readKeyFile,
} from "./master-key.ts";
import type { SealedSecretsTable } from "./schema.ts";
import { StorageError } from "./store-error.ts";
import { rootIdentity } from "./vault.ts";

/** Secrets to wrap in one transaction. */
const chunkRows = 500;

/** What a change of the master key came to. */
export interface Rewrapped {
  /** Secrets that are under the new master key. */
  readonly moved: number;
  /** Identities of those that do not open, and stay as they are. */
  readonly damaged: readonly string[];
  readonly masterKeyId: string;
}

/**
 * Brings every secret under a new master key. It can end at any moment and be begun again: until the last secret is
 * moved both keys are at hand, and each secret says which one it is under. Servers may go on meanwhile.
 *
 * @param source of the present key; a file's next key is made beside it and takes its place at the end.
 * @throws StorageError with a sentence for the operator.
 */
export async function rewrapStore(
  database: Database,
  source: MasterKeySource,
  onProgress: (moved: number, total: number) => void,
): Promise<Rewrapped> {
  const keyring = openKeyring(source, false);
  await requireRoot(database, keyring);
  const next = findNextKey(source);
  const masterKeyId = masterKeyIdOf(next);
  if (masterKeyId === masterKeyIdOf(keyring.current))
    throw new StorageError("the next master key is the present one");
  // First of all, since it tells every program which key new secrets go under.
  await moveRoot(database, keyring, next);
  const total = await countOthers(database, masterKeyId);
  const damaged: string[] = [];
  let moved = 1;
  let after = "";
  for (;;) {
    const chunk = await moveChunk(database, keyring, next, after);
    damaged.push(...chunk.damaged);
    moved += chunk.moved;
    onProgress(moved + damaged.length, total + 1);
    if (chunk.last === undefined) break;
    after = chunk.last;
  }
  if (source.kind === "file") await finish(database, source.path, next);
  return { moved, damaged, masterKeyId };
}

async function requireRoot({ name, reader }: Database, keyring: Keyring): Promise<void> {
  const root = await reader
    .selectFrom("sealed_secrets")
    .selectAll()
    .where("identity", "=", rootIdentity)
    .executeTakeFirst();
  if (root === undefined)
    throw new StorageError(`the store ${name} was never used; start the server on it once`);
  if (keyring.find(root.master_key_id) === undefined)
    throw new StorageError(`the master key is not the one that the store ${name} was sealed with`);
}

/** Within the one transaction that may write, so that of two rotations one puts its key in place. */
async function finish({ writer }: Database, path: string, next: Uint8Array): Promise<void> {
  await writer.transaction().execute(async () => {
    const waiting = readKeyFile(nextKeyPath(path));
    if (waiting !== undefined && masterKeyIdOf(waiting) === masterKeyIdOf(next))
      return replaceFile(nextKeyPath(path), path);
    const present = readKeyFile(path);
    if (present === undefined || masterKeyIdOf(present) !== masterKeyIdOf(next))
      throw new StorageError(`another rotation of ${path} runs; run this again`);
  });
}

function findNextKey(source: MasterKeySource): Uint8Array {
  if (source.kind === "file") {
    const path = nextKeyPath(source.path);
    const next = readKeyFile(path) ?? createKeyFile(path);
    if (next !== undefined) return next;
    throw new StorageError(`the next master key ${path} is gone again`);
  }
  if (source.next === undefined)
    throw new StorageError("set QSP_MASTER_KEY_NEXT to the key that QSP_MASTER_KEY is to be changed to");
  return Buffer.from(source.next, "hex");
}

async function moveRoot({ name, writer }: Database, keyring: Keyring, next: Uint8Array): Promise<void> {
  await writer.transaction().execute(async (db) => {
    const root = await db
      .selectFrom("sealed_secrets")
      .selectAll()
      .where("identity", "=", rootIdentity)
      .executeTakeFirst();
    if (root === undefined)
      throw new StorageError(`the store ${name} was never used; start the server on it once`);
    if (root.master_key_id === masterKeyIdOf(next)) return;
    if (!(await move(db, keyring, next, root)))
      throw new StorageError(`the master key is not the one that the store ${name} was sealed with`);
  });
}

async function countOthers({ reader }: Database, masterKeyId: string): Promise<number> {
  const { count } = await reader
    .selectFrom("sealed_secrets")
    .select((row) => row.fn.countAll<number>().as("count"))
    .where("master_key_id", "!=", masterKeyId)
    .executeTakeFirstOrThrow();
  return count;
}

/** Moves some secrets, in the order of their identities. @returns the last of them; undefined if there were none */
async function moveChunk(
  { writer }: Database,
  keyring: Keyring,
  next: Uint8Array,
  after: string,
): Promise<{ moved: number; damaged: string[]; last: string | undefined }> {
  return writer.transaction().execute(async (db) => {
    const rows = await db
      .selectFrom("sealed_secrets")
      .selectAll()
      .where("master_key_id", "!=", masterKeyIdOf(next))
      .where("identity", ">", after)
      .orderBy("identity")
      .limit(chunkRows)
      .execute();
    const damaged: string[] = [];
    for (const row of rows) if (!(await move(db, keyring, next, row))) damaged.push(row.identity);
    return { moved: rows.length - damaged.length, damaged, last: rows.at(-1)?.identity };
  });
}

/** @returns false if the secret does not open */
async function move(
  db: Database["writer"],
  keyring: Keyring,
  next: Uint8Array,
  { identity, master_key_id, wrapped_data_key, ciphertext }: SealedSecretsTable,
): Promise<boolean> {
  const old = keyring.find(master_key_id);
  if (old === undefined) return false;
  try {
    const sealed = { masterKeyId: master_key_id, wrappedDataKey: wrapped_data_key, ciphertext };
    const { masterKeyId, wrappedDataKey } = rewrapSecret(old, next, identity, sealed);
    await db
      .updateTable("sealed_secrets")
      .set({ master_key_id: masterKeyId, wrapped_data_key: wrappedDataKey })
      .where("identity", "=", identity)
      .execute();
    return true;
  } catch (error) {
    if (error instanceof CryptoError && error.code === "SEAL_BROKEN") return false;
    throw error;
  }
}

/** Puts one file in place of another, such that a power cut leaves one of the two. */
function replaceFile(from: string, to: string): void {
  renameSync(from, to);
  // Windows does not let a directory be opened.
  if (process.platform === "win32") return;
  const directory = openSync(dirname(to), "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
