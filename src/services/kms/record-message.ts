/** Turns records into messages. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { KeyRecordSchema } from "#gen/kms/key_pb.ts";
import { isMlDsaAlgorithm } from "../../crypto/algorithms.ts";
import { toPublicJwk } from "../../crypto/jwk.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import type { AnswerCodec } from "../../records/idempotency.ts";
import { packDamage } from "../fields.ts";
import { findUsage, isKeyAlgorithm, type KeyRecord, type KeyState } from "./record.ts";
import type { StoredKey } from "./store.ts";

type RecordMessage = MessageInitShape<typeof KeyRecordSchema>;

/** A record as it appears in lists: without its public key, which takes up to 2592 bytes per row. */
export function packListed(key: StoredKey): RecordMessage {
  return { ...packFacts(key.record), ...packSuccessor(key), ...packDamage(key) };
}

/** A record with its public key. */
export function packRecord(record: KeyRecord): RecordMessage {
  return packPublic(record);
}

function packPublic(record: KeyRecord) {
  const { algorithm, publicKey } = record;
  return { ...packFacts(record), publicKey, publicKeyPem: encodePublicKeyPem(algorithm, publicKey) };
}

function packFacts({ keyId, alias, algorithm, usage, state, createdAt }: KeyRecord) {
  return { keyId, alias, algorithm, usage, status: state, createdAt: timestampFromDate(createdAt) };
}

/** A record with its public key, also as a JWK if a standard defines one. */
export function packWithJwk(provider: CryptoProvider, key: StoredKey): RecordMessage {
  const { algorithm, publicKey } = key.record;
  const message = { ...packPublic(key.record), ...packSuccessor(key) };
  if (!isMlDsaAlgorithm(algorithm)) return message;
  const publicJwk = toPublicJwk(provider, provider.importPublicKey(algorithm, { raw: publicKey }));
  return { ...message, publicJwk: { ...publicJwk, $typeName: "pqc.Jwk" } };
}

function packSuccessor({ replacedBy }: StoredKey): { readonly replacedBy?: string } {
  return replacedBy === undefined ? {} : { replacedBy };
}

/** How a record is stored as an answer. It leaves out the owner, which is the caller that repeats the call. */
export const keyRecordCodec: AnswerCodec<KeyRecord> = {
  encode: (record) => toBinary(KeyRecordSchema, create(KeyRecordSchema, packRecord(record))),
  decode: (bytes) => {
    const { keyId, alias, algorithm, status, createdAt, publicKey } = fromBinary(KeyRecordSchema, bytes);
    if (!isKeyAlgorithm(algorithm) || createdAt === undefined || publicKey === undefined)
      throw new Error("a stored answer has an unknown form");
    return {
      keyId,
      alias,
      algorithm,
      usage: findUsage(algorithm),
      // This codec encoded it.
      state: status as KeyState,
      publicKey,
      owner: "",
      createdAt: timestampDate(createdAt),
    };
  },
};
