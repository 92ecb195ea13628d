import { sql } from "kysely";
import type { KeyUsage } from "../../crypto/key-uses.ts";
import { column, type ListedRow, type RecordOf } from "../../records/columns.ts";
import { sizeInJson } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import type { TableDeclaration } from "../../records/table-declaration.ts";
import { statesAfter } from "./event.ts";
import type { KmsLabelsTable } from "./label-index.ts";
import type { KeyAlgorithm, KeyState } from "./record.ts";

const columns = {
  keyId: column.text("key_id"),
  alias: column.text("alias"),
  algorithm: column.text<"algorithm", KeyAlgorithm>("algorithm"),
  usage: column.text<"key_usage", KeyUsage>("key_usage"),
  state: column.text<"key_state", KeyState>("key_state"),
  /** Raw, as `PublicKey.exportRaw` returns it. */
  publicKey: column.bytes("public_key"),
  /** User who created the key. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
  /** Name of the key, the stable handle of its versions; undefined for a key without a name. */
  name: column.optionalText("key_name"),
  /** Version number under the name, from 1. */
  version: column.optionalUint32("key_version"),
  /** Whether the name alone stands for this version. */
  isPrimary: column.optionalFlag("is_primary"),
  /** Labels of a key without a name; a name has the labels of its versions. */
  labels: column.textMap("labels"),
  /** When a key in the state DESTROY_SCHEDULED will be destroyed. */
  destroyAt: column.optionalTime("destroy_at_ms"),
  isImported: column.optionalFlag("is_imported"),
  /** Key that replaced this one on rotation. */
  replacedBy: column.optionalText("replaced_by"),
  /** Version of the Internet-Draft that the key follows; undefined for algorithms other than composites. */
  draft: column.added(column.optionalText("draft")),
};

/** A key without its secret half. */
export type KeyRecord = RecordOf<typeof columns>;

/** The condition of the index, in migrations.ts, on entries that change a key's state. */
const changing = `outcome = 'OK' and operation in (${Object.keys(statesAfter)
  .map((operation) => `'${operation}'`)
  .join(", ")})`;

/** Selects the entries that change a key's state. */
export const changes = sql<boolean>`${sql.raw(changing)}`;

/** Quota for an owner's keys, including ROTATED and DESTROYED ones, whose records stay. */
export const keyQuota = recordQuota("kms_keys", "keys");

export const keyTable: TableDeclaration<typeof columns> = {
  name: "kms_keys",
  columns,
  key: ["keyId"],
  owner: "owner",
  omittedAtEnd: ["name", "version", "isPrimary", "labels", "destroyAt", "isImported", "replacedBy"],
  filters: ["state", "algorithm"],
  quota: keyQuota,
  describe: ({ keyId }) => `key ${keyId}`,
  // Lists omit public keys.
  sizeOfListed: ({ public_key: _, ...row }) => sizeInJson(row),
  // Selects the newest entry about the key's state in the same statement as the record, so that both reflect
  // the same moment.
  alsoSelect: sql<string | null>`(
    select operation || ' ' || details from audit_entries
    where audit_entries.key_id = kms_keys.key_id and ${changes} order by sequence desc limit 1
  )`.as("last_change"),
};

const nameColumns = {
  owner: column.text("owner"),
  name: column.text("key_name"),
  /** Algorithm of the next version. */
  algorithm: column.text<"algorithm", KeyAlgorithm>("algorithm"),
  labels: column.textMap("labels"),
  /** Seconds between automatic rotations; undefined if only callers rotate. */
  rotationPeriodSeconds: column.optionalUint32("rotation_period_s"),
  nextRotationAt: column.optionalTime("next_rotation_at_ms"),
  /** Default waiting period for the destruction of a version, in seconds. */
  destroyAfterSeconds: column.optionalUint32("destroy_after_s"),
  /** Whether versions can only be imported. */
  isImportOnly: column.flag("is_import_only"),
  /** Number of the newest version; 0 if none exists. */
  versions: column.int32("versions"),
  /** Version that the name alone stands for. */
  primaryKeyId: column.optionalText("primary_key_id"),
  createdAt: column.time("created_at_ms"),
  /** Whether Google's interface signs an external mu with its versions, instead of data. */
  signsMu: column.flag("signs_mu"),
};

/** A name: the stable handle of a key's versions. */
export type KeyName = RecordOf<typeof nameColumns>;

export const nameTable: TableDeclaration<typeof nameColumns> = {
  name: "kms_names",
  columns: nameColumns,
  key: ["owner", "name"],
  owner: "owner",
  quota: recordQuota("kms_names", "names of keys"),
  describe: ({ name }) => `the key name ${name}`,
};

const grantColumns = {
  grantId: column.text("grant_id"),
  owner: column.text("owner"),
  ownerName: column.text("owner_name"),
  keyId: column.text("key_id"),
  name: column.text("key_name"),
  grantee: column.text("grantee"),
  granteeName: column.text("grantee_name"),
  operations: column.spacedList("operations"),
  expiresAt: column.optionalTime("expires_at_ms"),
  createdAt: column.time("created_at_ms"),
};

/** Reasons for the end of a grant. */
export const grantEnds = ["revoked", "expired"] as const;
export type GrantEnd = (typeof grantEnds)[number];

/**
 * Formats the details of the entry about a grant's end, which a client may follow. The ID stays first, because
 * `grantTable` searches for it.
 */
export function describeGrantEnd({ grantId, granteeName }: GrantRecord, end: GrantEnd): string {
  return `grantId=${grantId}, grantee=${granteeName}, reason=${end}`;
}

/** The condition and the column of the index on entries about grant ends, in migrations.ts. */
const ofGrantEnds = sql.raw("outcome = 'OK' and operation = 'REVOKE_GRANT'");
const endedGrant = sql.raw("substr(details, 1, 50)");

/** Quota for grants of an owner's keys. */
export const grantQuota = recordQuota("kms_grants", "grants");

export const grantTable: TableDeclaration<typeof grantColumns> = {
  name: "kms_grants",
  columns: grantColumns,
  key: ["grantId"],
  owner: "owner",
  quota: grantQuota,
  describe: ({ grantId }) => `grant ${grantId}`,
  alsoSelect: sql<string | null>`(
    select operation from audit_entries where ${ofGrantEnds} and ${endedGrant} = 'grantId=' || grant_id limit 1
  )`.as("grant_end"),
  hasEnded: (row) => (row.grant_end ?? null) !== null,
};

/** A grant. Exactly one of keyId and name is not empty. */
export type GrantRecord = RecordOf<typeof grantColumns>;

const importColumns = {
  importId: column.text("import_id"),
  owner: column.text("owner"),
  /** Wrapping algorithm. */
  method: column.text("method"),
  publicKey: column.bytes("public_key"),
  /** Import job of Google's interface; empty for an import token. */
  jobName: column.text("job_name"),
  expiresAt: column.time("expires_at_ms"),
  createdAt: column.time("created_at_ms"),
};

/** Quota for an owner's import tokens. */
export const importQuota = recordQuota("kms_imports", "unused import tokens");

export const importTable: TableDeclaration<typeof importColumns> = {
  name: "kms_imports",
  columns: importColumns,
  key: ["importId"],
  owner: "owner",
  quota: importQuota,
  // Expired import jobs stay, without their secrets.
  hasSecret: ({ jobName }) => jobName === "",
  describe: ({ importId }) => `import token ${importId}`,
};

/** An import until it is used or expires. Its secret key is in the vault. */
export type ImportRecord = RecordOf<typeof importColumns>;

declare module "../../database/schema.ts" {
  interface Schema {
    kms_keys: ListedRow<typeof columns>;
    kms_names: ListedRow<typeof nameColumns>;
    kms_grants: ListedRow<typeof grantColumns>;
    kms_imports: ListedRow<typeof importColumns>;
    kms_labels: KmsLabelsTable;
  }
}
