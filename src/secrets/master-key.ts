/** Loads the keys that wrap all data keys: the master key and, during a rotation, the next one. */
import { randomBytes } from "node:crypto";
import { closeSync, linkSync, openSync, readdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { nameMasterKey } from "../crypto/sealing.ts";
import { diskFullError } from "../database/disk-full.ts";
import { createDraft, removeRemains } from "../database/drafts.ts";
import { sync } from "../database/fsync.ts";
import { giveToOwner, makePrivateDirectory } from "../database/owned-files.ts";
import { requireTrustedOwner } from "../database/private-store.ts";
import { readMessage, StorageError } from "../database/store-error.ts";
import { maxSmallFileBytes, readFileWithin } from "../read-file.ts";
import { readErrorCode, saysDiskFull } from "../system-error.ts";

/** Length of a master key (AES-256), in bytes. */
const masterKeyBytes = 32;

/** Where master keys come from: a file, or values from the operator's environment or commands. */
export type MasterKeySource =
  | { readonly kind: "file"; readonly path: string }
  | ({ readonly kind: "values" } & KeyValues);

/** Master keys as hexadecimal digits, and the settings that they come from. */
interface KeyValues {
  readonly current: string;
  readonly next: string | undefined;
  readonly settings: { readonly current: string; readonly next: string };
}

/** The variables that hold master keys. */
export const keyVariables: KeyValues["settings"] = {
  current: "QSP_MASTER_KEY",
  next: "QSP_MASTER_KEY_NEXT",
};

/** The settings that name programs which print master keys. */
export const keyCommands: KeyValues["settings"] = {
  current: "--master-key-command",
  next: "--master-key-next-command",
};

export interface Keyring {
  /**
   * Finds a key by its ID. Rereads the files for an unknown ID, because a rotation may have added the key.
   */
  find(masterKeyId: string): Uint8Array | undefined;
  /** The source's current key, which seals a new store. */
  readonly current: Uint8Array;
}

export function masterKeyIn(dataDir: string): MasterKeySource {
  return { kind: "file", path: join(dataDir, "master.key") };
}

/** Path of the next master key during a rotation. */
export function nextKeyPath(path: string): string {
  return `${path}.next`;
}

/** Path where a rotation leaves the previous key, which older backups need. */
export function previousKeyPath(path: string): string {
  return `${path}.previous`;
}

/** Path of an older key: the next rotation moves the previous key there. */
export function olderKeyPath(path: string, masterKeyId: string): string {
  return `${previousKeyPath(path)}-${masterKeyId}`;
}

/** Reads the previous key and all older ones, by ID. */
export function readPreviousKeys(path: string): ReadonlyMap<string, Uint8Array> {
  const previous = basename(previousKeyPath(path));
  const files = readdirSync(dirname(path)).filter(
    (name) => name === previous || name.startsWith(`${previous}-`),
  );
  const keys = files.flatMap((name) => readKeyFile(join(dirname(path), name)) ?? []);
  return new Map(keys.map((key) => [nameMasterKey(key), key]));
}

/**
 * Reads the master keys of a source. A file holds 64 hexadecimal digits and must be readable only by its
 * owner; a file owned by root may also be readable by its group.
 *
 * @param mayCreate creates a missing file with mode 0600; only right for a new store
 * @throws StorageError if the key is missing or malformed, or its file is owned or readable by other users
 */
export function openKeyring(source: MasterKeySource, mayCreate: boolean): Keyring {
  const current = readCurrent(source, mayCreate);
  const known = new Map([[nameMasterKey(current), current]]);
  const add = (key: Uint8Array | undefined): void => {
    if (key !== undefined) known.set(nameMasterKey(key), key);
  };
  add(readNext(source));
  return {
    current,
    find(masterKeyId) {
      if (!known.has(masterKeyId) && source.kind === "file") {
        // Order matters: a rotation that ends between the two reads moves the next key to the second path.
        add(readNext(source));
        add(readKeyFile(source.path));
      }
      return known.get(masterKeyId);
    },
  };
}

function readCurrent(source: MasterKeySource, mayCreate: boolean): Uint8Array {
  if (source.kind === "values") return parseKey(source.current, source.settings.current);
  const key = readKeyFile(source.path) ?? (mayCreate ? createKeyFile(source.path) : undefined);
  if (key !== undefined) return key;
  throw new StorageError(`the master key ${source.path} is missing; the store cannot be read without it`);
}

/** Reads the next master key, which exists during a rotation. */
export function readNext(source: MasterKeySource): Uint8Array | undefined {
  if (source.kind === "file") return readKeyFile(nextKeyPath(source.path));
  return source.next === undefined ? undefined : parseKey(source.next, source.settings.next);
}

/**
 * Reads a master key.
 *
 * @returns undefined if the file does not exist
 */
export function readKeyFile(path: string): Uint8Array | undefined {
  const text = readIfExists(path);
  if (text === undefined) return undefined;
  const key = parseKey(text, path);
  requireTrustedOwner(path);
  if (!isPrivate(path)) throw new StorageError(`other users can read ${path}; set its mode to 0600`);
  return key;
}

/**
 * Returns whether a file is readable only by this user, or by the group that root chose for it. systemd
 * credentials and Kubernetes secrets belong to root. A server that is not root reads them through its group
 * or an access list, which shows in the group bits. PostgreSQL has the same rule for its TLS key
 * (ssl_key_file).
 */
function isPrivate(path: string): boolean {
  // Windows has no such mode bits; there, the file inherits its directory's access list.
  if (process.platform === "win32") return true;
  const { mode, uid } = statSync(path);
  const isFromRoot = uid === 0 && process.geteuid?.() !== 0;
  return (mode & (isFromRoot ? 0o037 : 0o077)) === 0;
}

function parseKey(text: string, source: string): Uint8Array {
  if (/^[0-9a-f]{64}\s*$/i.test(text)) return Buffer.from(text.trim(), "hex");
  throw new StorageError(`${source} is not a master key: expected ${masterKeyBytes * 2} hexadecimal digits`);
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileWithin(path, maxSmallFileBytes).toString();
  } catch (error) {
    if (readErrorCode(error) === "ENOENT") return undefined;
    throw new StorageError(`${path} cannot be read: ${readMessage(error)}`);
  }
}

/**
 * Creates a master key, or reads the existing one. If several programs start at once, one creates the key and
 * the others read it. On return, the key is on disk and may seal secrets.
 */
export function createKeyFile(path: string): Uint8Array | undefined {
  withTemporaryKeyFile(path, randomBytes(masterKeyBytes), (draft) => {
    try {
      // A link appears with its complete content, and only if the path does not exist yet.
      linkSync(draft, path);
    } catch (error) {
      if (readErrorCode(error) !== "EEXIST") throw error;
    }
    sync(dirname(path));
  });
  return readKeyFile(path);
}

/**
 * Replaces the current key with the next one and keeps the current key as the previous key, and the previous
 * key as an older one. A kill or power cut at any moment leaves all keys, because the current key gets its
 * second name before it loses the first.
 */
export function replaceKeyFile(path: string): void {
  const present = readKeyFile(path);
  const previousPath = previousKeyPath(path);
  if (present !== undefined)
    withTemporaryKeyFile(previousPath, present, (draft) => {
      const previous = readKeyFile(previousPath);
      const previousId = previous && nameMasterKey(previous);
      // A run that was killed here has already saved the current key.
      if (previousId !== undefined && previousId !== nameMasterKey(present))
        renameSync(previousPath, olderKeyPath(path, previousId));
      renameSync(draft, previousPath);
      sync(dirname(path));
    });
  explainWriting(path, () => {
    renameSync(nextKeyPath(path), path);
    sync(dirname(path));
  });
}

/**
 * Writes a key to a temporary file in the same directory, readable only by its owner, and finally removes
 * that file.
 */
function withTemporaryKeyFile(path: string, key: Uint8Array, publish: (draft: string) => void): void {
  explainWriting(path, () => {
    makeDirectory(dirname(path));
    const draft = createDraft(`${path}.`);
    try {
      const digits = `${Buffer.from(key).toString("hex")}\n`;
      const file = openSync(draft.path, "wx", 0o600);
      try {
        giveToOwner(file, draft.path);
        writeFileSync(file, digits, { flush: true });
      } finally {
        closeSync(file);
      }
      publish(draft.path);
    } finally {
      draft.remove();
    }
  });
}

/**
 * Removes temporary key files whose program was killed.
 *
 * @returns the removed files
 */
export function removeKeyRemains(source: MasterKeySource): string[] {
  if (source.kind === "values") return [];
  const { path } = source;
  return [path, nextKeyPath(path), previousKeyPath(path)].flatMap((one) => removeRemains(`${one}.`));
}

/** @throws StorageError */
function explainWriting(path: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    if (saysDiskFull(error)) throw diskFullError(path);
    throw new StorageError(`${path} cannot be written: ${readMessage(error)}`);
  }
}

function makeDirectory(path: string): void {
  // A new directory is itself an entry in its parent.
  for (const made of makePrivateDirectory(path)) sync(dirname(made));
}
