/** The fields that filters of Google's lists may name. */
import { type RawBuilder, sql } from "kysely";
import {
  CryptoKey_CryptoKeyPurposeSchema,
  CryptoKeyVersion_CryptoKeyVersionAlgorithmSchema,
  CryptoKeyVersion_CryptoKeyVersionStateSchema,
  ImportJob_ImportJobStateSchema,
  ImportJob_ImportMethodSchema,
  ProtectionLevelSchema,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type { KeyName, KeyState } from "../kms/record.ts";
import { googleAlgorithms, nameValue } from "./algorithms.ts";
import {
  choiceField,
  everything,
  type FilterFields,
  labelsField,
  nothing,
  textField,
  timeField,
} from "./filter.ts";
import { importMethods } from "./import-methods.ts";
import { algorithmOf, versionStates } from "./pack.ts";

type Condition = RawBuilder<boolean>;

const created = timeField("created_at_ms");
const level = choiceField({ SOFTWARE: everything }, namesOf(ProtectionLevelSchema));

/** Fields of key rings. */
export const ringFields: FilterFields = { name: textField(sql.ref("ring_name")), create_time: created };

/** Fields of keys. */
export const keyFields: FilterFields = {
  name: textField(sql.ref("key_name")),
  create_time: created,
  purpose: choiceField(
    groupConditions(({ purpose }) => nameValue(CryptoKey_CryptoKeyPurposeSchema, purpose)),
    namesOf(CryptoKey_CryptoKeyPurposeSchema),
  ),
  "version_template.algorithm": choiceField(
    groupConditions(({ algorithm }) =>
      nameValue(CryptoKeyVersion_CryptoKeyVersionAlgorithmSchema, algorithm),
    ),
    namesOf(CryptoKeyVersion_CryptoKeyVersionAlgorithmSchema),
  ),
  "version_template.protection_level": level,
  import_only: choiceField({
    true: sql<boolean>`(is_import_only = 1)`,
    false: sql<boolean>`(is_import_only = 0)`,
  }),
  labels: labelsField("labels"),
};

/** Fields of the versions of a key, all of which have its algorithm. */
export function versionFields(named: KeyName): FilterFields {
  const algorithm = nameValue(CryptoKeyVersion_CryptoKeyVersionAlgorithmSchema, algorithmOf(named));
  return {
    name: textField(sql<string>`(key_name || '/cryptoKeyVersions/' || key_version)`),
    create_time: created,
    destroy_time: timeField("destroy_at_ms"),
    state: choiceField(stateConditions, namesOf(CryptoKeyVersion_CryptoKeyVersionStateSchema)),
    algorithm: choiceField(
      { [algorithm]: everything },
      namesOf(CryptoKeyVersion_CryptoKeyVersionAlgorithmSchema),
    ),
    protection_level: level,
  };
}

/** Fields of import jobs. @param now decides which jobs have expired */
export function jobFields(now: Date): FilterFields {
  const ms = now.getTime();
  const ofMethod = ({ google, own }: (typeof importMethods)[number]) =>
    [nameValue(ImportJob_ImportMethodSchema, google), sql<boolean>`(method = ${own})`] as const;
  return {
    name: textField(sql.ref("job_name")),
    create_time: created,
    expire_time: timeField("expires_at_ms"),
    state: choiceField(
      { ACTIVE: sql<boolean>`(expires_at_ms > ${ms})`, EXPIRED: sql<boolean>`(expires_at_ms <= ${ms})` },
      namesOf(ImportJob_ImportJobStateSchema),
    ),
    import_method: choiceField(
      Object.fromEntries(importMethods.map(ofMethod)),
      namesOf(ImportJob_ImportMethodSchema),
    ),
    protection_level: level,
  };
}

/** Several states of a key are one state of a version. */
const stateConditions: Readonly<Record<string, Condition>> = Object.fromEntries(
  Object.values(versionStates).map((google) => {
    const own = (Object.keys(versionStates) as KeyState[]).filter((state) => versionStates[state] === google);
    const name = nameValue(CryptoKeyVersion_CryptoKeyVersionStateSchema, google);
    return [name, sql<boolean>`(key_state in (${sql.join(own)}))`];
  }),
);

/** The conditions of keys by a property of their algorithm. */
function groupConditions(nameOf: (algorithm: (typeof googleAlgorithms)[number]) => string) {
  const conditions: Record<string, Condition> = {};
  for (const one of googleAlgorithms) {
    const signsMu = one.signingInput === "externalMu" ? 1 : 0;
    const condition = sql<boolean>`(algorithm = ${one.own} and signs_mu = ${signsMu})`;
    const name = nameOf(one);
    conditions[name] = sql<boolean>`(${conditions[name] ?? nothing} or ${condition})`;
  }
  return conditions;
}

function namesOf({ values }: { readonly values: readonly { readonly name: string }[] }): string[] {
  return values.map(({ name }) => name);
}
