import { randomUUID } from "node:crypto";
import type { CreateKeyRequest } from "#gen/kms/kms_service_pb.ts";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import type { SecretKey } from "../../crypto/provider.ts";
import { refuse, refuseField } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import type { Principal } from "../../records/ownership.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { ServiceDeps } from "../service-deps.ts";
import { type Actor, recordDone, subjectOf } from "./event.ts";
import { findUsage, isKeyAlgorithm, type KeyAlgorithm } from "./record.ts";
import { packRecord, type RecordMessage, recordCodec } from "./record-message.ts";
import type { KmsStore } from "./store.ts";
import { type KeyRecord, keyQuota } from "./tables.ts";

export interface CreateDeps extends ServiceDeps {
  readonly keys: KmsStore;
}

/** Properties of a new key; omitted texts are empty. */
export type NewKey = Omit<CreateKeyRequest, "$typeName">;

/**
 * Creates a key and stores its sealed secret half.
 *
 * @throws FIELD_INVALID if the algorithm does not match the usage, NAME_TAKEN, IDEMPOTENCY_KEY_REUSED,
 *   QUOTA_EXCEEDED
 */
export async function createKey(
  deps: CreateDeps,
  key: NewKey,
  { principal, idempotentCall }: CallerInput,
): Promise<RecordMessage> {
  const { store } = deps;
  const algorithm = chooseAlgorithm(key);
  return store.runIdempotent(idempotentCall, recordCodec, async (write) => {
    await store.requireRoom(keyQuota, principal.userId);
    await requireNameFree(deps.keys, principal.userId, key.name);
    return withFreshKeyPair(deps.provider, algorithm, ({ secretKey }) =>
      write((transaction) => storeKey(deps, transaction, { ...key, principal, algorithm, secretKey })),
    );
  });
}

export interface KeyToStore extends NewKey {
  readonly algorithm: KeyAlgorithm;
  readonly secretKey: SecretKey;
  readonly principal: Principal;
  readonly isImported?: boolean;
}

/**
 * Stores a key pair without a name, or as the first version of its name, within a transaction.
 *
 * @throws NAME_TAKEN
 */
export async function storeKey(
  { keys, now }: Pick<CreateDeps, "keys" | "now">,
  transaction: WriteTransaction,
  { alias, algorithm, name, rotationPeriodSeconds, labels, secretKey, principal, isImported }: KeyToStore,
): Promise<RecordMessage> {
  const owner = principal.userId;
  const createdAt = now();
  await requireNameFree(keys, owner, name, transaction);
  const isNamed = name !== "";
  const record = toRecord(secretKey, {
    alias,
    owner,
    createdAt,
    isImported: isImported === true,
    labels: isNamed ? {} : labels,
    ...(isNamed && { name, version: 1, isPrimary: true }),
  });
  const nextRotationAt = findNextRotation(createdAt, rotationPeriodSeconds);
  const settings = { ...plainName, owner, name, algorithm, labels, rotationPeriodSeconds, nextRotationAt };
  const named = isNamed ? { ...settings, versions: 1, primaryKeyId: record.keyId, createdAt } : undefined;
  if (named) await keys.names.insert(transaction, named);
  await insertKey({ keys }, transaction, { actor: principal, record, secretKey });
  return packRecord(record, named);
}

/** Settings that only Google's interface gives to names. */
const plainName = { destroyAfterSeconds: undefined, isImportOnly: false, signsMu: false };

/** Returns the time of the next automatic rotation. */
export function findNextRotation(from: Date, periodSeconds: number | undefined): Date | undefined {
  return periodSeconds === undefined ? undefined : new Date(from.getTime() + periodSeconds * 1000);
}

export function toRecord(
  { algorithm, publicKey }: SecretKey,
  given: Pick<KeyRecord, "alias" | "owner" | "createdAt"> & Partial<KeyRecord>,
): KeyRecord {
  const keyId = `key-${randomUUID()}`;
  return {
    keyId,
    algorithm,
    usage: findUsage(algorithm),
    state: "ACTIVE",
    publicKey: publicKey.exportRaw(),
    name: undefined,
    version: undefined,
    isPrimary: false,
    labels: {},
    destroyAt: undefined,
    isImported: false,
    replacedBy: undefined,
    ...given,
    alias: given.alias || keyId,
  };
}

/**
 * Stores a new key with its secret half, and records the creation.
 *
 * @param more continues the details of the audit entry
 */
export async function insertKey(
  { keys }: Pick<CreateDeps, "keys">,
  transaction: WriteTransaction,
  { actor, record, secretKey, more = "" }: NewKeyRecord,
): Promise<void> {
  await keys.insertWithSecret(transaction, record, secretKey);
  const { algorithm, usage, name, version, isImported } = record;
  const ofName = name === undefined ? "" : `, name=${name}, version=${version}`;
  const details = `algorithm=${algorithm}, usage=${usage}${ofName}${more}`;
  recordDone(transaction, actor, isImported ? "IMPORT" : "CREATE", subjectOf(record), details);
}

interface NewKeyRecord {
  readonly actor: Actor;
  readonly record: KeyRecord;
  readonly secretKey: SecretKey;
  readonly more?: string;
}

/** @throws FIELD_INVALID */
export function chooseAlgorithm({ algorithm, usage }: Pick<NewKey, "algorithm" | "usage">): KeyAlgorithm {
  const name = algorithm || (usage === "KEM" ? "ML-KEM-768" : "ML-DSA-65");
  if (!isKeyAlgorithm(name)) throw refuseField("algorithm", `"${name}" is unknown`);
  const right = findUsage(name);
  if (usage === "" || usage === right) return name;
  throw refuseField("usage", `"${usage}" is not a usage of ${name}; omit it or send "${right}"`);
}

/**
 * Checks that an owner does not have a name yet.
 *
 * @throws NAME_TAKEN
 */
export async function requireNameFree(
  keys: KmsStore,
  owner: string,
  name: string,
  transaction?: WriteTransaction,
): Promise<void> {
  if (name === "" || (await keys.names.find(owner, name, transaction)) === undefined) return;
  throw refuse("NAME_TAKEN", `the name ${name} is taken; choose a different name, or rotate its key`, {
    name,
  });
}
