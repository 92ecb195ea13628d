/** Converts records to messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { KeyRecordSchema } from "#gen/kms/key_pb.ts";
import { isMlDsaAlgorithm } from "../../crypto/algorithms.ts";
import { toPublicJwk } from "../../crypto/jwk.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { type AnswerCodec, messageCodec } from "../../records/idempotency.ts";
import type { StoredKey } from "./store.ts";
import type { KeyName, KeyRecord } from "./tables.ts";

export type RecordMessage = MessageInitShape<typeof KeyRecordSchema> & { readonly keyId: string };

/** Encodes a record as a stored answer. */
export const recordCodec = messageCodec(KeyRecordSchema) as AnswerCodec<RecordMessage>;

/** Packs a record for lists: without its public key, which takes up to 2592 bytes per row. */
export function packListed(
  { record, isIntact }: StoredKey,
  name: KeyName | undefined,
  owner: string | undefined,
): RecordMessage {
  if (!isIntact) return { keyId: record.keyId, damaged: true };
  return { ...packFacts(record, name), ...(owner !== undefined && { owner }) };
}

/** Packs a record with its public key. */
export function packRecord(record: KeyRecord, name: KeyName | undefined): RecordMessage {
  const { algorithm, publicKey } = record;
  return { ...packFacts(record, name), publicKey, publicKeyPem: encodePublicKeyPem(algorithm, publicKey) };
}

/** Packs a record with its public key, including the JWK if a standard defines one. */
export function packWithJwk(
  provider: CryptoProvider,
  { record }: StoredKey,
  name: KeyName | undefined,
  owner: string | undefined,
): RecordMessage {
  const publicJwk = packJwk(provider, record);
  return {
    ...packRecord(record, name),
    ...(publicJwk !== undefined && { publicJwk }),
    ...(owner !== undefined && { owner }),
  };
}

/** Returns the public key as a JWK (RFC 9964); undefined for an algorithm without one. */
export function packJwk(provider: CryptoProvider, { algorithm, publicKey }: KeyRecord) {
  if (!isMlDsaAlgorithm(algorithm)) return undefined;
  const jwk = toPublicJwk(provider.importPublicKey(algorithm, { raw: publicKey }));
  return { ...jwk, $typeName: "pqc.Jwk" as const };
}

function packFacts(record: KeyRecord, name: KeyName | undefined): RecordMessage {
  const { keyId, alias, algorithm, usage, state, destroyAt, replacedBy, draft } = record;
  return {
    ...{ keyId, alias, algorithm, usage, status: state },
    createdAt: timestampFromDate(record.createdAt),
    labels: { ...(name?.labels ?? record.labels) },
    origin: record.isImported ? "IMPORTED" : "GENERATED",
    ...(replacedBy !== undefined && { replacedBy }),
    ...(draft !== undefined && { draft }),
    ...(state === "DESTROY_SCHEDULED" && destroyAt && { destroyAt: timestampFromDate(destroyAt) }),
    ...packVersion(record, name),
  };
}

function packVersion({ name, version, isPrimary }: KeyRecord, found: KeyName | undefined) {
  if (name === undefined || version === undefined) return {};
  const { rotationPeriodSeconds, nextRotationAt } = found ?? {};
  return {
    name,
    version,
    ...(isPrimary && { isPrimary }),
    ...(isPrimary && rotationPeriodSeconds !== undefined && { rotationPeriodSeconds }),
    ...(isPrimary && nextRotationAt && { nextRotationAt: timestampFromDate(nextRotationAt) }),
  };
}
