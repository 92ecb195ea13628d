/** Keys in kms that sign roles. */
import type { ProposeRootRequest } from "#gen/tuf/repository_service_pb.ts";
import { isMlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import { withFreshKeyPairs } from "../../src/crypto/fresh-key-pair.ts";
import { beginAttempt, recordingRefusal } from "../../src/services/kms/attempt.ts";
import { storeKey } from "../../src/services/kms/create.ts";
import { keyDamaged, keyNotFound, keyUsageMismatch } from "../../src/services/kms/key-refusals.ts";
import { signing } from "../../src/services/kms/sign.ts";
import { type KeyRecord, keyQuota } from "../../src/services/kms/tables.ts";
import { findUsable } from "../../src/services/kms/use-key.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import type { TufDeps, Who } from "./deps.ts";
import type { RoleKey } from "./keys.ts";
import { type OnlineRole, onlineRoles } from "./metadata.ts";
import type { Repository } from "./tables.ts";

/** A role's key in kms. */
export interface StoredRoleKey extends RoleKey {
  readonly keyId: string;
}

/** Keys of some roles. */
export type RoleKeys<Role extends string = OnlineRole> = Readonly<Partial<Record<Role, StoredRoleKey>>>;

/** Algorithm of new role keys. */
const newKeyAlgorithm = "ML-DSA-65";

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
 * Finds the keys that a request names: empty for a role without one.
 *
 * @throws the errors of findRoleKey
 */
export async function findGivenKeys(
  deps: TufDeps,
  who: Who,
  {
    targetsKey,
    snapshotKey,
    timestampKey,
  }: Pick<ProposeRootRequest, "targetsKey" | "snapshotKey" | "timestampKey">,
): Promise<RoleKeys> {
  const handles = { targets: targetsKey, snapshot: snapshotKey, timestamp: timestampKey };
  const found: Partial<Record<OnlineRole, StoredRoleKey>> = {};
  for (const role of onlineRoles)
    if (handles[role] !== "") found[role] = await findRoleKey(deps, who, handles[role]);
  return found;
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
  if (!isMlDsaAlgorithm(algorithm)) throw keyUsageMismatch(record, "; a TUF role needs an ML-DSA key");
  return { keyId, algorithm, publicKey };
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

/**
 * Creates keys for roles, which `use` stores within its transaction.
 *
 * @throws QUOTA_EXCEEDED
 */
export async function withNewKeys<Role extends string, Result>(
  deps: TufDeps,
  { principal }: Pick<Who, "principal">,
  { repository, owner }: Pick<Repository, "repository" | "owner">,
  roles: readonly Role[],
  use: (storeKeys: (transaction: WriteTransaction) => Promise<RoleKeys<Role>>) => Promise<Result>,
): Promise<Result> {
  if (roles.length > 0) await deps.store.requireRoom(keyQuota, owner, roles.length);
  return withFreshKeyPairs(
    deps.provider,
    roles.map(() => newKeyAlgorithm),
    (pairs) =>
      use(async (transaction) => {
        const keys: Partial<Record<string, StoredRoleKey>> = {};
        for (const [i, { secretKey }] of pairs.entries()) {
          const alias = `TUF ${repository} ${roles[i]}`;
          const key = { alias, name: "", labels: {}, algorithm: newKeyAlgorithm, usage: "SIGN" } as const;
          const { keyId } = await storeKey(deps, transaction, { ...key, secretKey, principal });
          const publicKey = secretKey.publicKey.exportRaw();
          keys[roles[i] ?? ""] = { keyId, algorithm: newKeyAlgorithm, publicKey };
        }
        return keys as RoleKeys<Role>;
      }),
  );
}

/** The IDs of the keys of the online roles, as a repository or a proposed root stores them. */
export type KeyIds = Pick<Repository, "targetsKeyId" | "snapshotKeyId" | "timestampKeyId">;

export function toKeyIds({ targets, snapshot, timestamp }: RoleKeys): KeyIds {
  return {
    targetsKeyId: targets?.keyId ?? "",
    snapshotKeyId: snapshot?.keyId ?? "",
    timestampKeyId: timestamp?.keyId ?? "",
  };
}

export function fromKeyIds(ids: KeyIds): Readonly<Record<OnlineRole, string>> {
  return { targets: ids.targetsKeyId, snapshot: ids.snapshotKeyId, timestamp: ids.timestampKeyId };
}
