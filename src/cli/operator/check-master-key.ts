/** Checks whether the operator's master key opens a store or a copy of it. */
import { existsSync } from "node:fs";
import { StorageError } from "../../database/store-error.ts";
import { type Keyring, type MasterKeySource, openKeyring } from "../../secrets/master-key.ts";
import { countByMasterKey, opensStore } from "../../secrets/master-keys-in-use.ts";

type SecretReader = Parameters<typeof opensStore>[0];

/** Master keys found in a source, before a store is opened with them. */
export type FoundKeys =
  | { readonly kind: "absent" }
  | { readonly kind: "invalid"; readonly reason: string }
  | { readonly kind: "present"; readonly name: string; readonly keyring: Keyring };

/** Names a key source for people: its file or its variable. */
export function nameKeySource(source: MasterKeySource): string {
  return source.kind === "file" ? source.path : source.settings.current;
}

/** Looks for the master keys in a source without creating any. A key that cannot be read or used is "invalid". */
export function findKeys(source: MasterKeySource): FoundKeys {
  if (source.kind === "file" && !existsSync(source.path)) return { kind: "absent" };
  try {
    return { kind: "present", name: nameKeySource(source), keyring: openKeyring(source, false) };
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    return { kind: "invalid", reason: error.message };
  }
}

export function warn(sentence: string): void {
  process.stderr.write(`qsp: warning: ${sentence}\n`);
}

/** Why the operator's keys cannot open a store, or open only part of it. */
export type KeyFault =
  | { readonly kind: "invalid"; readonly reason: string }
  | { readonly kind: "wrong"; readonly name: string }
  | { readonly kind: "damaged" }
  | { readonly kind: "incomplete"; readonly masterKeyId: string; readonly secrets: number };

/**
 * Finds why these keys do not open all secrets of a store.
 *
 * @returns no faults if no keys are available to check
 */
export async function findKeyFaults(reader: SecretReader, keys: FoundKeys): Promise<KeyFault[]> {
  if (keys.kind === "absent") return [];
  if (keys.kind === "invalid") return [keys];
  try {
    return await findFaultsOf(reader, keys);
  } catch (error) {
    // After a rotation, the new key file may be unreadable for this user.
    if (!(error instanceof StorageError)) throw error;
    return [{ kind: "invalid", reason: error.message }];
  }
}

async function findFaultsOf(
  reader: SecretReader,
  { keyring, name }: Extract<FoundKeys, { kind: "present" }>,
): Promise<KeyFault[]> {
  const isOpen = await opensStore(reader, keyring);
  // A rotation moves the root key first, then the other secrets.
  const missing = (await countByMasterKey(reader)).filter(
    ({ masterKeyId }) => keyring.find(masterKeyId) === undefined,
  );
  if (isOpen) return missing.map((part) => ({ kind: "incomplete", ...part }));
  return [missing.length === 0 ? { kind: "damaged" } : { kind: "wrong", name }];
}
