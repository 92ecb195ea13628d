/** Finds the key that wraps all data keys. */
import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { hasDatabase, StorageError } from "./database.ts";

/** Bytes of the master key, for AES-256. */
const masterKeyBytes = 32;

/**
 * Reads the master key from a file of 64 hexadecimal digits; at the first start it makes one, of mode 0600.
 *
 * @param path the operator's file; by default `master.key` in the data directory.
 * @throws StorageError if the file is missing although there is a store, is no key, or others can read it.
 */
export function loadMasterKey(dataDir: string, path = join(dataDir, "master.key")): Uint8Array {
  const isNew = !hasDatabase(dataDir);
  const text = readIfExists(path) ?? (isNew ? makeFile(path) : undefined);
  if (text === undefined) {
    throw new StorageError(`the master key ${path} is missing, and without it the store can not be read`);
  }
  if (!/^[0-9a-f]{64}\s*$/i.test(text)) {
    throw new StorageError(`${path} is no master key: expected ${masterKeyBytes * 2} hexadecimal digits`);
  }
  // Windows has no such bits; there the file has the access list of its directory.
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) {
    throw new StorageError(`${path} can be read by others than its owner; make its mode 0600`);
  }
  return Buffer.from(text.trim(), "hex");
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new StorageError(`${path} can not be read: ${error instanceof Error ? error.message : error}`);
  }
}

/** Makes the file; of several programs that start at once, one makes it and the others read that. */
function makeFile(path: string): string | undefined {
  const draft = `${path}.${randomBytes(8).toString("hex")}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(draft, `${randomBytes(masterKeyBytes).toString("hex")}\n`, {
      mode: 0o600,
      flag: "wx",
      flush: true,
    });
    // A link appears with its whole content, and only if there is none yet.
    linkSync(draft, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) {
      throw new StorageError(`${path} can not be written: ${error instanceof Error ? error.message : error}`);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return readIfExists(path);
}
