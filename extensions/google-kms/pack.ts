/** Converts the key service's keys and names to Google's messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type CryptoKeySchema,
  type CryptoKeyVersionSchema,
  PublicKey_PublicKeyFormat as Format,
  ProtectionLevel,
  CryptoKeyVersion_CryptoKeyVersionAlgorithm as VersionAlgorithm,
  CryptoKeyVersion_CryptoKeyVersionState as VersionState,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type { KeyState } from "../../src/services/kms/record.ts";
import type { KeyName, KeyRecord } from "../../src/services/kms/tables.ts";
import { findGoogleAlgorithm } from "./algorithms.ts";

/** Default delay of a destruction in seconds: 30 days. */
export const defaultDestroySeconds = 30 * 86_400;

/**
 * A ROTATED key still verifies and decapsulates, so Google's clients must be able to fetch its public key.
 */
export const versionStates: Readonly<Record<KeyState, VersionState>> = {
  ACTIVE: VersionState.ENABLED,
  ROTATED: VersionState.ENABLED,
  DISABLED: VersionState.DISABLED,
  DESTROY_SCHEDULED: VersionState.DESTROY_SCHEDULED,
  DESTROYED: VersionState.DESTROYED,
};

/** Google's algorithm of a name's versions; UNSPECIFIED if Google has none. */
export function algorithmOf({
  algorithm,
  signsMu,
}: Pick<KeyName, "algorithm" | "signsMu">): VersionAlgorithm {
  const found = findGoogleAlgorithm(algorithm, { isExternalMu: signsMu });
  return found?.algorithm ?? VersionAlgorithm.CRYPTO_KEY_VERSION_ALGORITHM_UNSPECIFIED;
}

/** A name as a Google key. */
export function packKey(named: KeyName): MessageInitShape<typeof CryptoKeySchema> {
  const { name, algorithm, labels, createdAt, isImportOnly, destroyAfterSeconds, signsMu } = named;
  const found = findGoogleAlgorithm(algorithm, { isExternalMu: signsMu });
  return {
    name,
    ...(found && { purpose: found.purpose }),
    createTime: timestampFromDate(createdAt),
    versionTemplate: { protectionLevel: ProtectionLevel.SOFTWARE, algorithm: algorithmOf(named) },
    labels: { ...labels },
    importOnly: isImportOnly,
    destroyScheduledDuration: durationFromMs((destroyAfterSeconds ?? defaultDestroySeconds) * 1000),
  };
}

/** Formats a version's name. */
export function nameOfVersion({ name, version }: Pick<KeyRecord, "name" | "version">): string {
  return `${name}/cryptoKeyVersions/${version}`;
}

/** The raw encoding that a standard defines for public keys of an algorithm; undefined for ECDSA. */
export function findRawFormat(algorithm: string): Format | undefined {
  if (algorithm === "ECDSA-P256") return undefined;
  return algorithm === "X-Wing" ? Format.XWING_RAW_BYTES : Format.NIST_PQC;
}

/** A key as a Google version. */
export function packVersion(
  record: KeyRecord,
  named: KeyName,
): MessageInitShape<typeof CryptoKeyVersionSchema> {
  const { state, createdAt, destroyAt, isImported, algorithm } = record;
  const created = timestampFromDate(createdAt);
  return {
    name: nameOfVersion(record),
    state: versionStates[state],
    protectionLevel: ProtectionLevel.SOFTWARE,
    algorithm: algorithmOf({ algorithm, signsMu: named.signsMu }),
    createTime: created,
    ...(isImported ? { importTime: created } : { generateTime: created }),
    ...(state === "DESTROY_SCHEDULED" && destroyAt && { destroyTime: timestampFromDate(destroyAt) }),
  };
}
