/** Finds the keys that wrap all data keys: the master key, and the next one while it is being changed. */
import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { nameMasterKey } from "../crypto/sealing.ts";
import { sync } from "../database/fsync.ts";
import { readMessage, StorageError } from "../database/store-error.ts";

/** Bytes of the master key, for AES-256. */
const masterKeyBytes = 32;

/** Where master keys come from: a file, or values that the operator's environment holds. */
export type MasterKeySource =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "values"; readonly current: string; readonly next: string | undefined };

/** The master keys that are at hand. */
export interface Keyring {
  /** The key of an id. Reads the files again if there is none: a rotation may have brought it. */
  find(masterKeyId: string): Uint8Array | undefined;
  /** The key of the source itself, which seals a new store. */
  readonly current: Uint8Array;
}

/** The master key of a data directory. */
export function masterKeyIn(dataDir: string): MasterKeySource {
  return { kind: "file", path: join(dataDir, "master.key") };
}

/** Where the next master key lies from the beginning of a rotation to its end. */
export function nextKeyPath(path: string): string {
  return `${path}.next`;
}

/** Where a rotation leaves the key before, which older backups take. */
export function previousKeyPath(path: string): string {
  return `${path}.previous`;
}

/**
 * Reads the master keys of a source. A file holds 64 hexadecimal digits and is its owner's alone.
 *
 * @param mayCreate makes the file, of mode 0600, where it is missing; only right for a store that is new.
 * @throws StorageError if there is none, it is no key, or others can read it.
 */
export function openKeyring(source: MasterKeySource, mayCreate: boolean): Keyring {
  const current = readCurrent(source, mayCreate);
  const known = new Map([[nameMasterKey(current), current]]);
  const learn = (key: Uint8Array | undefined): void => {
    if (key !== undefined) known.set(nameMasterKey(key), key);
  };
  learn(readNext(source));
  return {
    current,
    find(masterKeyId) {
      if (!known.has(masterKeyId) && source.kind === "file") {
        // In this order: a rotation that ends between the two looks moves the next key to where we look then.
        learn(readNext(source));
        learn(readKeyFile(source.path));
      }
      return known.get(masterKeyId);
    },
  };
}

function readCurrent(source: MasterKeySource, mayCreate: boolean): Uint8Array {
  if (source.kind === "values") return parseKey(source.current, "QSP_MASTER_KEY");
  const key = readKeyFile(source.path) ?? (mayCreate ? createKeyFile(source.path) : undefined);
  if (key !== undefined) return key;
  throw new StorageError(`the master key ${source.path} is missing, and without it the store cannot be read`);
}

function readNext(source: MasterKeySource): Uint8Array | undefined {
  if (source.kind === "file") return readKeyFile(nextKeyPath(source.path));
  return source.next === undefined ? undefined : parseKey(source.next, "QSP_MASTER_KEY_NEXT");
}

/** Reads a master key. @returns undefined if there is no such file */
export function readKeyFile(path: string): Uint8Array | undefined {
  const text = readIfExists(path);
  if (text === undefined) return undefined;
  const key = parseKey(text, path);
  // Windows has no such bits; there the file has the access list of its directory.
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0)
    throw new StorageError(`${path} can be read by others than its owner; make its mode 0600`);
  return key;
}

function parseKey(text: string, source: string): Uint8Array {
  if (/^[0-9a-f]{64}\s*$/i.test(text)) return Buffer.from(text.trim(), "hex");
  throw new StorageError(`${source} is no master key: expected ${masterKeyBytes * 2} hexadecimal digits`);
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new StorageError(`${path} cannot be read: ${readMessage(error)}`);
  }
}

/**
 * Makes a master key, or takes the one that is there: of several programs that start at once, one makes it and the
 * others read that. It is on the disk when this returns, whoever made it, and may seal something.
 */
export function createKeyFile(path: string): Uint8Array | undefined {
  withTemporaryKeyFile(path, randomBytes(masterKeyBytes), (draft) => {
    try {
      // A link appears with its whole content, and only if there is none yet.
      linkSync(draft, path);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
    sync(dirname(path));
  });
  return readKeyFile(path);
}

/**
 * Puts the next key in place of the present one, which stays beside it as the previous one. A program that is killed,
 * or a power cut, at any moment leaves both keys: the present one has its second name before it loses the first.
 */
export function replaceKeyFile(path: string): void {
  const present = readKeyFile(path);
  if (present !== undefined)
    withTemporaryKeyFile(previousKeyPath(path), present, (draft) => {
      renameSync(draft, previousKeyPath(path));
      sync(dirname(path));
    });
  explainWriting(path, () => {
    renameSync(nextKeyPath(path), path);
    sync(dirname(path));
  });
}

/** Writes a key beside where it belongs, for its owner alone; the draft is gone in the end. */
function withTemporaryKeyFile(path: string, key: Uint8Array, publish: (draft: string) => void): void {
  const draft = `${path}.${randomBytes(8).toString("hex")}`;
  try {
    explainWriting(path, () => {
      makeDirectory(dirname(path));
      const digits = `${Buffer.from(key).toString("hex")}\n`;
      writeFileSync(draft, digits, { mode: 0o600, flag: "wx", flush: true });
      publish(draft);
    });
  } finally {
    rmSync(draft, { force: true });
  }
}

/** @throws StorageError */
function explainWriting(path: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    throw new StorageError(`${path} cannot be written: ${readMessage(error)}`);
  }
}

function makeDirectory(path: string): void {
  const first = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  // A directory that is new is itself a name in the one above.
  for (let at = resolve(path); at.length >= resolve(first).length; at = dirname(at)) sync(dirname(at));
}
