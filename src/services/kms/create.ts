import { randomUUID } from "node:crypto";
import type { CreateKeyRequest } from "#gen/kms/kms_service_pb.ts";
import { compositeDraft, isCompositeAlgorithm } from "../../crypto/algorithms.ts";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import type { KeyUsage } from "../../crypto/key-uses.ts";
import type { SecretKey } from "../../crypto/provider.ts";
import { refuse, refuseField } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import type { Principal } from "../../records/ownership.ts";
import { lendSecret } from "../../secrets/sealed-keys.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { ServiceDeps } from "../service-deps.ts";
import { type Actor, recordDone, subjectOf } from "./event.ts";
import { isKeyAlgorithm, type KeyAlgorithm, listUsages } from "./record.ts";
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
  const kind = chooseKind(key);
  return store.runIdempotent(idempotentCall, recordCodec, async (write) => {
    await store.requireRoom(keyQuota, principal.userId);
    await requireNameFree(deps.keys, principal.userId, key.name);
    return withFreshKeyPair(deps.provider, kind.algorithm, ({ secretKey }) =>
      write((transaction) => storeKey(deps, transaction, { ...key, ...kind, principal, secretKey })),
    );
  });
}

export interface KeyToStore extends Omit<NewKey, "algorithm" | "usage">, KeyKind {
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
  key: KeyToStore,
): Promise<RecordMessage> {
  const { alias, algorithm, usage, name, rotationPeriodSeconds, labels, secretKey, principal, isImported } =
    key;
  const owner = principal.userId;
  const createdAt = now();
  await requireNameFree(keys, owner, name, transaction);
  const isNamed = name !== "";
  const record = toRecord(secretKey, {
    usage,
    alias,
    owner,
    createdAt,
    isImported: isImported === true,
    labels: isNamed ? {} : labels,
    ...(isNamed && { name, version: 1, isPrimary: true }),
  });
  if (isImported) await requireSingleUse(keys, transaction, record);
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
  given: Pick<KeyRecord, "alias" | "owner" | "createdAt" | "usage"> & Partial<KeyRecord>,
): KeyRecord {
  const keyId = `key-${randomUUID()}`;
  return {
    keyId,
    algorithm,
    state: "ACTIVE",
    publicKey: publicKey.exportRaw(),
    name: undefined,
    version: undefined,
    isPrimary: false,
    labels: {},
    destroyAt: undefined,
    isImported: false,
    replacedBy: undefined,
    draft: isCompositeAlgorithm(algorithm) ? compositeDraft : undefined,
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
  await lendSecret(secretKey, (secret) => keys.insert(transaction, record, secret));
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

/** Algorithm and usage of a key. */
export interface KeyKind {
  readonly algorithm: KeyAlgorithm;
  readonly usage: KeyUsage;
}

const defaultAlgorithms: Readonly<Record<string, KeyAlgorithm>> = {
  KEM: "ML-KEM-768",
  ENCRYPT: "X-Wing",
};

/** Names in Google's interface, which has no operation for keys with the usage ENCRYPT. */
const inKeyRing = /^projects\/[^/]+\/locations\/[^/]+\/keyRings\//;

/**
 * Completes the algorithm and the usage of a request.
 *
 * @throws FIELD_INVALID
 */
export function chooseKind({
  algorithm,
  usage,
  name: keyName,
}: Pick<NewKey, "algorithm" | "usage" | "name">): KeyKind {
  if (usage === "ENCRYPT" && inKeyRing.test(keyName))
    throw refuseField(
      "name",
      "is in a key ring, whose keys cannot have the usage ENCRYPT; choose a name outside",
    );
  const name = algorithm || (defaultAlgorithms[usage] ?? "ML-DSA-65");
  if (!isKeyAlgorithm(name)) throw refuseField("algorithm", `"${name}" is unknown`);
  const usages = listUsages(name);
  const chosen = usage === "" ? usages[0] : usages.find((known) => known === usage);
  if (chosen !== undefined) return { algorithm: name, usage: chosen };
  if (usage === "ENCRYPT")
    throw refuseField("usage", `"ENCRYPT" needs X-Wing, ML-KEM-768 or ML-KEM-1024, not ${name}`);
  const known = usages.map((right) => `"${right}"`).join(" or ");
  throw refuseField("usage", `"${usage}" is not a usage of ${name}; omit it or send ${known}`);
}

/**
 * Checks that no other key of any owner gives an imported key a second use. A public key has one usage:
 * otherwise, Decapsulate would return the secrets that protect what Encrypt has encrypted. A component of a
 * composite is in no other key. The importer has the secret key, so the refusal reveals nothing.
 *
 * @throws KEY_INVALID
 */
export async function requireSingleUse(
  keys: KmsStore,
  transaction: WriteTransaction,
  record: KeyRecord,
): Promise<void> {
  const component = await keys.findSharedComponent(transaction, record);
  if (component !== undefined)
    throw refuseField(
      "wrappedKey",
      `contains a key whose ${component} component is stored in another key; a component of a composite must not be used twice, so import a newly generated key`,
      "KEY_INVALID",
    );
  const other = await keys.findOtherUsage(transaction, record);
  if (other === undefined) return;
  const advice = `import it with usage "${other}", or import a different key`;
  throw refuseField(
    "wrappedKey",
    `contains a key that is stored with the usage ${other}; ${advice}`,
    "KEY_INVALID",
  );
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
