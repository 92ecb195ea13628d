/** Checks whether the master key that an operator has opens a copy of a store. */
import { existsSync } from "node:fs";
import { StorageError } from "../../database/store-error.ts";
import { type Keyring, type MasterKeySource, openKeyring } from "../../secrets/master-key.ts";
import { countByMasterKey, opensStore } from "../../secrets/master-keys-in-use.ts";

/** Reads the secrets of a store. */
type SecretReader = Parameters<typeof opensStore>[0];

/** The master keys that were found in a source, before a store is opened with them. */
export type FoundKeys =
  | { readonly kind: "absent" }
  | { readonly kind: "invalid"; readonly reason: string }
  | { readonly kind: "present"; readonly name: string; readonly keyring: Keyring };

/** Names a source for people: its file or its variable. */
export function nameKeySource(source: MasterKeySource): string {
  return source.kind === "file" ? source.path : "QSP_MASTER_KEY";
}

/** Looks for the master keys of a source; creates none. A key that cannot be read or used is "invalid". */
export function findKeys(source: MasterKeySource): FoundKeys {
  if (source.kind === "file" && !existsSync(source.path)) return { kind: "absent" };
  try {
    return { kind: "present", name: nameKeySource(source), keyring: openKeyring(source, false) };
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    return { kind: "invalid", reason: error.message };
  }
}

/** Writes a warning to stderr. */
export function warn(sentence: string): void {
  process.stderr.write(`qsp: warning: ${sentence}\n`);
}

/** A reason why a store cannot be read, or not as a whole, with the keys of its operator. */
export type KeyFault =
  | { readonly kind: "invalid"; readonly reason: string }
  | { readonly kind: "wrong"; readonly name: string }
  | { readonly kind: "damaged" }
  | { readonly kind: "incomplete"; readonly masterKeyId: string; readonly secrets: number };

/** Finds what keeps these keys from opening all secrets of a store. @returns nothing if there are no keys to check */
export async function findKeyFaults(reader: SecretReader, keys: FoundKeys): Promise<KeyFault[]> {
  if (keys.kind === "absent") return [];
  if (keys.kind === "invalid") return [keys];
  try {
    return await findFaultsOf(reader, keys);
  } catch (error) {
    // A rotation may have replaced a key file by one that this user cannot read.
    if (!(error instanceof StorageError)) throw error;
    return [{ kind: "invalid", reason: error.message }];
  }
}

async function findFaultsOf(
  reader: SecretReader,
  { keyring, name }: Extract<FoundKeys, { kind: "present" }>,
): Promise<KeyFault[]> {
  const isOpen = await opensStore(reader, keyring);
  // A rotation moves the root first, and the other secrets after it.
  const missing = (await countByMasterKey(reader)).filter(
    ({ masterKeyId }) => keyring.find(masterKeyId) === undefined,
  );
  if (isOpen) return missing.map((part) => ({ kind: "incomplete", ...part }));
  return [missing.length === 0 ? { kind: "damaged" } : { kind: "wrong", name }];
}
