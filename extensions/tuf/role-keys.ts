/** Keys in kms that sign roles. */
import type { ConnectError } from "@connectrpc/connect";
import { isMlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import type { KeyPair } from "../../src/crypto/provider.ts";
import { beginAttempt, recordingRefusal } from "../../src/services/kms/attempt.ts";
import { storeKey } from "../../src/services/kms/create.ts";
import { keyDamaged, keyNotFound, keyUsageMismatch } from "../../src/services/kms/key-refusals.ts";
import { signing } from "../../src/services/kms/sign.ts";
import type { KeyRecord } from "../../src/services/kms/tables.ts";
import { findUsable } from "../../src/services/kms/use-key.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import type { TufDeps, Who } from "./deps.ts";
import type { RoleKey } from "./keys.ts";

/** A role's key in kms. */
export interface StoredRoleKey extends RoleKey {
  readonly keyId: string;
}

/** Algorithm of new role keys. */
export const newKeyAlgorithm = "ML-DSA-65";

/**
 * Finds the key that a handle names, and checks that it can sign metadata now.
 *
 * @throws KEY_NOT_FOUND, GRANT_MISSING, KEY_STATE_INVALID, KEY_USAGE_MISMATCH, KEY_DAMAGED
 */
export async function findRoleKey(deps: TufDeps, who: Who, handle: string): Promise<StoredRoleKey> {
  const attempt = beginAttempt("SIGN", { handle, ...who });
  return recordingRefusal(deps, attempt, async () => {
    const { key } = await findUsable(deps, attempt, signing);
    return toRoleKey(key.record);
  });
}

/**
 * Reads a role's key, whatever its state: its public half stays in metadata until a new version names another.
 *
 * @throws KEY_NOT_FOUND, KEY_DAMAGED
 */
export async function readRoleKey({ keys }: Pick<TufDeps, "keys">, keyId: string): Promise<StoredRoleKey> {
  const key = await keys.find(keyId);
  if (key === undefined) throw keyNotFound(keyId);
  if (!key.isIntact) throw keyDamaged(keyId);
  return toRoleKey(key.record);
}

/** @throws KEY_USAGE_MISMATCH */
export function toRoleKey(record: KeyRecord): StoredRoleKey {
  const { keyId, algorithm, publicKey } = record;
  if (!isMlDsaAlgorithm(algorithm)) throw notMlDsa(record);
  return { keyId, algorithm, publicKey };
}

function notMlDsa(record: KeyRecord): ConnectError {
  return keyUsageMismatch(record, "; a TUF role needs an ML-DSA key");
}

/** Maximum rotations to follow; a name's key may have been rotated many times since the last root. */
const maxRotations = 1000;

/** Follows the rotations of a key in kms to the newest one. */
export async function followRotations({ keys }: Pick<TufDeps, "keys">, keyId: string): Promise<string> {
  let newest = keyId;
  for (let i = 0; i < maxRotations; i++) {
    const key = await keys.find(newest);
    if (key?.record.state !== "ROTATED" || key.record.replacedBy === undefined) return newest;
    newest = key.record.replacedBy;
  }
  return newest;
}

/** Stores a new key for a role, within a transaction. */
export async function storeRoleKey(
  deps: TufDeps,
  transaction: WriteTransaction,
  { secretKey }: KeyPair,
  {
    principal,
    repository,
    role,
  }: Pick<Who, "principal"> & { readonly repository: string; readonly role: string },
): Promise<StoredRoleKey> {
  const { publicKey } = secretKey;
  const { keyId } = await storeKey(deps, transaction, {
    alias: `TUF ${repository} ${role}`,
    name: "",
    labels: {},
    algorithm: newKeyAlgorithm,
    usage: "SIGN",
    secretKey,
    principal,
  });
  return { keyId, algorithm: newKeyAlgorithm, publicKey: publicKey.exportRaw() };
}
