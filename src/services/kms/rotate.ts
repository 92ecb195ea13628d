import type { ConnectError } from "@connectrpc/connect";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import type { SecretKey } from "../../crypto/provider.ts";
import { refuse, refuseField } from "../../errors.ts";
import type { Principal } from "../../records/ownership.ts";
import { intact } from "../../records/table-declaration.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import {
  type Change,
  type ChangeDeps,
  type ChangeInput,
  changeInTransaction,
  recordChange,
  takeAnswer,
  wrapCodec,
} from "./change.ts";
import { describeKey, findNextRotation, toRecord } from "./create.ts";
import { eventBy, subjectOf } from "./event.ts";
import { findKey } from "./find-key.ts";
import { findNameOf, findStateRefusal } from "./life-cycle.ts";
import type { KeyName, KeyRecord } from "./record.ts";
import { packRecord, type RecordMessage, recordCodec } from "./record-message.ts";
import type { StoredKey } from "./store.ts";
import { keyQuota } from "./tables.ts";
import { recordingRefusal, toWanted } from "./use-key.ts";

/** The most characters of the alias of a new version. */
const maxAliasCharacters = 255;

/**
 * Replaces an ACTIVE key with a new one of the same algorithm. If the key has a name, the new key becomes its primary
 * version. If callers race, only one succeeds.
 *
 * @returns the new key.
 * @throws KEY_NOT_FOUND, GRANT_MISSING, KEY_STATE_INVALID, KEY_DAMAGED, IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED,
 *   FIELD_INVALID for a name that takes imported keys only
 */
export async function rotateKey(deps: ChangeDeps, input: ChangeInput): Promise<RecordMessage> {
  const { store, cache, provider } = deps;
  const { idempotentCall, principal } = input;
  const wanted = toWanted({ ...input, operation: "ROTATE" });
  let keyId = "";
  return recordingRefusal(deps, wanted, input.signal, async () => {
    const changed = await store.runIdempotent(idempotentCall, wrapCodec(recordCodec), async (write) => {
      // The transaction reads the key again and decides; this read saves the key pair of a call that cannot succeed.
      const { key } = await findKey(deps, wanted);
      const refusal = findRotationRefusal(key);
      if (refusal) throw refusal;
      if ((await findNameOf(deps, undefined, key.record))?.isImportOnly)
        throw refuseField(
          "keyId",
          "is a version of a name that takes imported keys only; import the next one",
        );
      keyId = key.record.keyId;
      await store.requireRoom(keyQuota, key.record.owner);
      return withFreshKeyPair(provider, key.record.algorithm, ({ secretKey }) =>
        write((transaction) =>
          changeInTransaction(deps, transaction, { wanted, keyId }, rotation(deps, principal, secretKey)),
        ),
      );
    });
    cache.forget(keyId);
    return takeAnswer(changed);
  });
}

/** Replaces a key with a new key pair. */
export function rotation(
  deps: Pick<ChangeDeps, "keys" | "now">,
  principal: Principal,
  secretKey: SecretKey,
): Change<RecordMessage> {
  return {
    operation: "ROTATE",
    codec: recordCodec,
    findRefusal: findRotationRefusal,
    apply: (transaction, key) => replaceKey(deps, transaction, { principal, secretKey, key }),
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
  { principal, secretKey, key }: { principal: Principal; secretKey: SecretKey; key: StoredKey },
): Promise<RecordMessage> {
  const old = key.record;
  const named = await findNameOf({ keys }, transaction, old);
  const createdAt = now();
  const record = toRecord(secretKey, {
    alias: aliasAfter(old),
    owner: old.owner,
    createdAt,
    labels: old.labels,
    ...(named && { name: named.name, version: named.versions + 1, isPrimary: true }),
  });
  await keys.change(transaction, key, { state: "ROTATED", isPrimary: false, replacedBy: record.keyId });
  recordChange(transaction, { principal, operation: "ROTATE" }, key, `newKeyId=${record.keyId}`);
  const renamed = named && (await keys.names.update(transaction, intact(named), nextVersion(named, record)));
  await keys.insertWithSecret(transaction, record, secretKey);
  const details = `${describeKey(record)}, rotatedFrom=${old.keyId}`;
  transaction.audit(eventBy(principal, subjectOf(record), { operation: "CREATE", outcome: "OK", details }));
  return packRecord(record, renamed);
}

/** The changes of a name that gets a new primary version. */
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

/** A name is rotated many times, so its aliases stop growing at some length. */
function aliasAfter({ alias, name }: KeyRecord): string {
  const rotated = `${alias}-rotated`;
  return name !== undefined && rotated.length > maxAliasCharacters ? alias : rotated;
}
