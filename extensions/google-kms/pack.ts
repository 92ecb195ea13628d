/** Converts the key service's keys and names to Google's messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type CryptoKeySchema,
  type CryptoKeyVersionSchema,
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

/**
 * A damaged record in a list: only its name, because the rest may belong to another user. Google's messages
 * cannot mark it as damaged, but their clients accept a message without the other fields, and every call
 * about the record fails with DATA_LOSS. A list without the record would claim that it does not exist.
 */
export function packDamaged(name: string) {
  return { name };
}

/** Formats a version's name. */
export function nameOfVersion({ name, version }: Pick<KeyRecord, "name" | "version">): string {
  return `${name}/cryptoKeyVersions/${version}`;
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
