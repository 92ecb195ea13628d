/** Fields that filters in Google's lists may use. */
import type { DescEnum } from "@bufbuild/protobuf";
import {
  ImportJob_ImportJobStateSchema as JobStateSchema,
  ImportJob_ImportMethodSchema as MethodSchema,
  ProtectionLevelSchema,
  CryptoKey_CryptoKeyPurposeSchema as PurposeSchema,
  CryptoKeyVersion_CryptoKeyVersionAlgorithmSchema as VersionAlgorithmSchema,
  CryptoKeyVersion_CryptoKeyVersionStateSchema as VersionStateSchema,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type { ImportRecord, KeyName, KeyRecord } from "../../src/services/kms/tables.ts";
import { findGoogleAlgorithm, importMethods, nameValue } from "./algorithms.ts";
import { choiceField, type FilterFields, labelsField, textField, timeField } from "./filter.ts";
import { algorithmOf, nameOfVersion, versionStates } from "./pack.ts";
import type { RingRecord } from "./tables.ts";

const software = () => "SOFTWARE";

/** Key ring fields. */
export const ringFields: FilterFields<RingRecord> = {
  name: textField(({ name }) => name),
  create_time: timeField(({ createdAt }) => createdAt),
};

/** Key fields. */
export const keyFields: FilterFields<KeyName> = {
  name: textField(({ name }) => name),
  create_time: timeField(({ createdAt }) => createdAt),
  purpose: choiceField(
    ({ algorithm }) => nameValue(PurposeSchema, findGoogleAlgorithm(algorithm)?.purpose ?? 0),
    namesOf(PurposeSchema),
  ),
  "version_template.algorithm": choiceField(nameAlgorithm, namesOf(VersionAlgorithmSchema)),
  "version_template.protection_level": choiceField(software, namesOf(ProtectionLevelSchema)),
  import_only: choiceField(({ isImportOnly }) => String(isImportOnly), ["true", "false"]),
  labels: labelsField(({ labels }) => labels),
};

/** Version fields. */
export function versionFields({ signsMu }: Pick<KeyName, "signsMu">): FilterFields<KeyRecord> {
  return {
    name: textField(nameOfVersion),
    create_time: timeField(({ createdAt }) => createdAt),
    destroy_time: timeField(({ state, destroyAt }) =>
      state === "DESTROY_SCHEDULED" ? destroyAt : undefined,
    ),
    state: choiceField(
      ({ state }) => nameValue(VersionStateSchema, versionStates[state]),
      namesOf(VersionStateSchema),
    ),
    algorithm: choiceField(
      ({ algorithm }) => nameAlgorithm({ algorithm, signsMu }),
      namesOf(VersionAlgorithmSchema),
    ),
    protection_level: choiceField(software, namesOf(ProtectionLevelSchema)),
  };
}

/**
 * Import job fields.
 *
 * @param now determines which jobs have expired
 */
export function jobFields(now: Date): FilterFields<ImportRecord> {
  return {
    name: textField(({ jobName }) => jobName),
    create_time: timeField(({ createdAt }) => createdAt),
    expire_time: timeField(({ expiresAt }) => expiresAt),
    state: choiceField(({ expiresAt }) => (expiresAt > now ? "ACTIVE" : "EXPIRED"), namesOf(JobStateSchema)),
    import_method: choiceField(
      ({ method }) => nameValue(MethodSchema, importMethods.find(({ own }) => own === method)?.google ?? 0),
      namesOf(MethodSchema),
    ),
    protection_level: choiceField(software, namesOf(ProtectionLevelSchema)),
  };
}

function nameAlgorithm(of: Pick<KeyName, "algorithm" | "signsMu">): string {
  return nameValue(VersionAlgorithmSchema, algorithmOf(of));
}

function namesOf({ values }: DescEnum): string[] {
  return values.map(({ name }) => name);
}
