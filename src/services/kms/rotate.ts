import type { ConnectError } from "@connectrpc/connect";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import type { SecretKey } from "../../crypto/provider.ts";
import { refuse, refuseField } from "../../errors.ts";
import { intact } from "../../records/table-declaration.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { type Change, type ChangeDeps, type ChangeInput, runChange } from "./change.ts";
import { findNextRotation, insertKey, toRecord } from "./create.ts";
import { type Actor, recordDone, subjectOf } from "./event.ts";
import { findKey } from "./find-key.ts";
import { findNameOf, findStateRefusal } from "./life-cycle.ts";
import { packRecord, type RecordMessage, recordCodec } from "./record-message.ts";
import type { StoredKey } from "./store.ts";
import type { KeyName, KeyRecord } from "./tables.ts";
import { keyQuota } from "./tables.ts";

/** Maximum length of a new version's alias, and of an alias that grows. */
const maxAliasCharacters = 255;

/**
 * Replaces an ACTIVE key with a new one of the same algorithm. If the key has a name, the new key becomes its
 * primary version. If callers race, only one succeeds.
 *
 * @returns the new key
 * @throws KEY_NOT_FOUND, GRANT_MISSING, KEY_STATE_INVALID, KEY_DAMAGED, IDEMPOTENCY_KEY_REUSED,
 *   QUOTA_EXCEEDED; FIELD_INVALID for a name that accepts imported keys only
 */
export function rotateKey(deps: ChangeDeps, input: ChangeInput): Promise<RecordMessage> {
  const { store, provider } = deps;
  const kind = { operation: "ROTATE", codec: recordCodec } as const;
  return runChange(deps, input, kind, async (attempt, changeById) => {
    // The transaction reads the key again and decides; this read avoids generating a key pair for a call that
    // cannot succeed.
    const { key } = await findKey(deps, attempt);
    const refusal = findRotationRefusal(key);
    if (refusal) throw refusal;
    const { keyId, owner, algorithm } = key.record;
    if ((await findNameOf(deps, undefined, key.record))?.isImportOnly)
      throw refuseField(
        "keyId",
        "is a version of a name that accepts imported keys only; import the next version",
      );
    await store.requireRoom(keyQuota, owner);
    return withFreshKeyPair(provider, algorithm, ({ secretKey }) =>
      changeById(keyId, rotation(deps, input.principal, secretKey)),
    );
  });
}

/** Builds the change that replaces a key with a new key pair. */
export function rotation(
  deps: Pick<ChangeDeps, "keys" | "now">,
  actor: Actor,
  secretKey: SecretKey,
): Change<RecordMessage> {
  return {
    findRefusal: findRotationRefusal,
    apply: (transaction, key) => replaceKey(deps, transaction, { actor, secretKey, key }),
  };
}

/** Only an ACTIVE key can be rotated, and only the primary version of a name. */
export function findRotationRefusal(key: StoredKey): ConnectError | undefined {
  const refusal = findStateRefusal(key, "ROTATE", ["ACTIVE"]);
  const { keyId, name, isPrimary } = key.record;
  if (refusal !== undefined || name === undefined || isPrimary) return refusal;
  return refuse("KEY_STATE_INVALID", `key ${keyId} is not the primary version of ${name}; rotate that one`, {
    keyId,
    name,
    operation: "ROTATE",
  });
}

async function replaceKey(
  { keys, now }: Pick<ChangeDeps, "keys" | "now">,
  transaction: WriteTransaction,
  { actor, secretKey, key }: { actor: Actor; secretKey: SecretKey; key: StoredKey },
): Promise<RecordMessage> {
  const old = key.record;
  const named = await findNameOf({ keys }, transaction, old);
  const createdAt = now();
  const record = toRecord(secretKey, {
    usage: old.usage,
    alias: aliasAfter(old),
    owner: old.owner,
    createdAt,
    labels: old.labels,
    ...(named && { name: named.name, version: named.versions + 1, isPrimary: true }),
  });
  await keys.change(transaction, key, { state: "ROTATED", isPrimary: false, replacedBy: record.keyId });
  recordDone(transaction, actor, "ROTATE", subjectOf(old), `newKeyId=${record.keyId}`);
  const renamed = named && (await keys.names.update(transaction, intact(named), nextVersion(named, record)));
  await insertKey({ keys }, transaction, { actor, record, secretKey, more: `, rotatedFrom=${old.keyId}` });
  return packRecord(record, renamed);
}

/** Changes to a name that gets a new primary version. */
export function nextVersion(
  { versions, rotationPeriodSeconds }: KeyName,
  { keyId, createdAt }: KeyRecord,
): Partial<KeyName> {
  return {
    versions: versions + 1,
    primaryKeyId: keyId,
    nextRotationAt: findNextRotation(createdAt, rotationPeriodSeconds),
  };
}

/** Rotations may repeat, so aliases must stop growing: before the limit with a name, otherwise after it. */
function aliasAfter({ alias, name }: KeyRecord): string {
  const rotated = `${alias}-rotated`;
  return (name === undefined ? alias : rotated).length > maxAliasCharacters ? alias : rotated;
}
