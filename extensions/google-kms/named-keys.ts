/** Names whose versions are added one by one, as in Google's interface. Earlier versions stay ACTIVE. */
import { withFreshKeyPair } from "../../src/crypto/fresh-key-pair.ts";
import type { SecretKey } from "../../src/crypto/provider.ts";
import type { TextMap } from "../../src/records/columns.ts";
import type { Principal } from "../../src/records/ownership.ts";
import { intact } from "../../src/records/table-declaration.ts";
import type { ChangeDeps } from "../../src/services/kms/change.ts";
import { insertKey, requireNameFree, requireSingleUse, toRecord } from "../../src/services/kms/create.ts";
import { recordDone, subjectOf } from "../../src/services/kms/event.ts";
import { writeName } from "../../src/services/kms/handle.ts";
import { keyNotFound } from "../../src/services/kms/key-refusals.ts";
import { listUsages } from "../../src/services/kms/record.ts";
import { nextVersion } from "../../src/services/kms/rotate.ts";
import type { KeyName, KeyRecord } from "../../src/services/kms/tables.ts";
import { keyQuota } from "../../src/services/kms/tables.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";

/** Properties of a new name. */
export type NewName = Pick<
  KeyName,
  "name" | "algorithm" | "labels" | "destroyAfterSeconds" | "isImportOnly" | "signsMu"
>;

/**
 * Creates a name, with or without a first version.
 *
 * @throws NAME_TAKEN, QUOTA_EXCEEDED
 */
export async function createName(
  deps: ChangeDeps,
  principal: Principal,
  given: NewName,
  hasVersion: boolean,
): Promise<KeyName> {
  const { store, keys, provider, now } = deps;
  const owner = principal.userId;
  await requireNameFree(keys, owner, given.name);
  const create = (secretKey?: SecretKey): Promise<KeyName> =>
    store.write(async (transaction) => {
      await requireNameFree(keys, owner, given.name, transaction);
      const named: KeyName = {
        ...given,
        owner,
        rotationPeriodSeconds: undefined,
        nextRotationAt: undefined,
        versions: 0,
        primaryKeyId: undefined,
        createdAt: now(),
      };
      await keys.names.insert(transaction, named);
      recordName(transaction, principal, named, "CREATE_NAME");
      if (secretKey === undefined) return named;
      return (await storeVersion(deps, transaction, { named, secretKey, principal })).name;
    });
  if (!hasVersion) return create();
  await store.requireRoom(keyQuota, owner);
  return withFreshKeyPair(provider, given.algorithm, ({ secretKey }) => create(secretKey));
}

/**
 * Adds a generated version to one of the caller's own names.
 *
 * @param isDisabled whether the version starts DISABLED instead of ACTIVE
 * @throws KEY_NOT_FOUND, QUOTA_EXCEEDED
 */
export async function addVersion(
  deps: ChangeDeps,
  principal: Principal,
  name: string,
  isDisabled: boolean,
): Promise<KeyRecord> {
  const { store, provider } = deps;
  const { algorithm } = await requireName(deps, principal, name);
  await store.requireRoom(keyQuota, principal.userId);
  return withFreshKeyPair(provider, algorithm, ({ secretKey }) =>
    putVersion(deps, principal, name, secretKey, { isDisabled }),
  );
}

/**
 * Stores a key pair as a name's next version.
 *
 * @throws KEY_NOT_FOUND, QUOTA_EXCEEDED
 */
export async function putVersion(
  deps: ChangeDeps,
  principal: Principal,
  name: string,
  secretKey: SecretKey,
  origin: Pick<Version, "isImported" | "isDisabled">,
): Promise<KeyRecord> {
  const { previous, record } = await deps.store.write(async (transaction) => {
    const named = await requireName(deps, principal, name, transaction);
    const stored = await storeVersion(deps, transaction, { named, secretKey, principal, ...origin });
    return { ...stored, previous: named.primaryKeyId };
  });
  if (previous !== undefined) deps.cache.forget(previous);
  return record;
}

/**
 * Replaces a name's labels.
 *
 * @throws KEY_NOT_FOUND
 */
export async function changeLabels(
  { store, keys }: ChangeDeps,
  principal: Principal,
  name: string,
  labels: TextMap,
): Promise<KeyName> {
  // A cheap early check that rejects most calls. The transaction makes the decision.
  await requireName({ keys }, principal, name);
  return store.write(async (transaction) => {
    const named = await requireName({ keys }, principal, name, transaction);
    const changed = await keys.names.update(transaction, intact(named), { labels });
    recordName(transaction, principal, changed, "UPDATE_NAME");
    return changed;
  });
}

/**
 * Finds one of the caller's own names.
 *
 * @throws KEY_NOT_FOUND
 */
export async function requireName(
  { keys }: Pick<ChangeDeps, "keys">,
  principal: Principal,
  name: string,
  transaction?: WriteTransaction,
): Promise<KeyName> {
  const named = await keys.names.find(principal.userId, name, transaction);
  if (named === undefined) throw keyNotFound(name);
  return named;
}

interface Version {
  readonly named: KeyName;
  readonly secretKey: SecretKey;
  readonly principal: Principal;
  readonly isImported?: boolean;
  readonly isDisabled?: boolean;
}

async function storeVersion(
  { keys, now }: Pick<ChangeDeps, "keys" | "now">,
  transaction: WriteTransaction,
  { named, secretKey, principal, isImported = false, isDisabled = false }: Version,
): Promise<{ readonly name: KeyName; readonly record: KeyRecord }> {
  const { owner, name, versions, primaryKeyId } = named;
  // Adding a version never changes Google's primary one. In kms, a name stands for its primary version: one that nobody
  // can use yet does not replace it.
  const isPrimary = !isDisabled || primaryKeyId === undefined;
  const place = { name, version: versions + 1, isPrimary };
  const [usage] = listUsages(secretKey.algorithm);
  const record = toRecord(secretKey, { usage, alias: "", owner, createdAt: now(), isImported, ...place });
  if (isImported) await requireSingleUse(keys, transaction, record);
  const before = isPrimary && primaryKeyId && (await keys.findForChange(transaction, primaryKeyId));
  if (before) await keys.change(transaction, before, { isPrimary: false });
  const changes = isPrimary ? nextVersion(named, record) : { versions: versions + 1 };
  const changed = await keys.names.update(transaction, intact(named), changes);
  await insertKey({ keys }, transaction, { actor: principal, record, secretKey });
  if (!isDisabled) return { name: changed, record };
  const disabled = await keys.change(transaction, intact(record), { state: "DISABLED" });
  recordDone(transaction, principal, "DISABLE", subjectOf(record), "stateBefore=ACTIVE");
  return { name: changed, record: disabled };
}

function recordName(
  transaction: WriteTransaction,
  principal: Principal,
  { owner, name, algorithm }: KeyName,
  operation: "CREATE_NAME" | "UPDATE_NAME",
): void {
  const subject = { keyId: writeName(name), owner, keyName: name };
  recordDone(transaction, principal, operation, subject, `algorithm=${algorithm}`);
}
