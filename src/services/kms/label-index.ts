/**
 * The label index. It only finds candidates: lists compare them with the labels in the records, which have
 * tags, so changing the index cannot give a key a label.
 */
import { type Kysely, sql } from "kysely";
import type { DatabaseKind } from "../../database/connection.ts";
import type { Schema, SqlTypes } from "../../database/schema.ts";
import { column, type RowOf, type TextMap } from "../../records/columns.ts";
import { createTable } from "../../records/create-table.ts";

const labelTable = {
  name: "kms_labels",
  columns: {
    /** As in the JSON object of the labels: `"team":"payments"`. */
    member: column.text("member"),
    owner: column.text("owner"),
    /** Empty for the label of a name. */
    keyId: column.text("key_id"),
    /** Empty for the label of a key without a name. */
    name: column.text("key_name"),
  },
  key: ["member", "owner", "keyId", "name"],
} as const;

export type KmsLabelsTable = RowOf<typeof labelTable.columns>;

/** A key or a name with labels. */
export interface Labelled {
  readonly owner: string;
  readonly keyId?: string;
  readonly name?: string | undefined;
  readonly labels: TextMap;
}

/** Formats a label as in the JSON object of a column. */
export function formatMember(label: string, value: string): string {
  return `${JSON.stringify(label)}:${JSON.stringify(value)}`;
}

/** Replaces the indexed labels of a key or name. */
export async function indexLabels(
  db: Kysely<Schema>,
  { owner, keyId = "", name = "", labels }: Labelled,
  isNew: boolean,
): Promise<void> {
  if (!isNew)
    await db
      .deleteFrom("kms_labels")
      .where("owner", "=", owner)
      .where("key_id", "=", keyId)
      .where("key_name", "=", name)
      .execute();
  const rows = Object.entries(labels).map(([label, value]) => ({
    member: formatMember(label, value),
    owner,
    key_id: keyId,
    key_name: name,
  }));
  if (rows.length > 0) await db.insertInto("kms_labels").values(rows).execute();
}

/** Selects the positions of keys that may have a label, directly or through their names. */
export function selectLabelled(member: string) {
  return sql`select labelled.position from kms_labels join kms_keys as labelled on labelled.key_id = kms_labels.key_id
      where kms_labels.member = ${member} and kms_labels.key_id <> ''
    union select labelled.position from kms_labels
      join kms_keys as labelled on labelled.owner = kms_labels.owner and labelled.key_name = kms_labels.key_name
      where kms_labels.member = ${member} and kms_labels.key_name <> ''`;
}

/** The tables whose records have labels, and the columns of the index that name a record. */
const labelled = { kms_keys: "key_id, ''", kms_names: "'', key_name" } as const;

/** Selects the index rows of all labels in a table. Text that is not JSON has no labels: its record is damaged. */
function selectMembers(kind: DatabaseKind, table: keyof typeof labelled): string {
  const members =
    kind === "sqlite"
      ? `json_quote(each.key) || ':' || json_quote(each.value), owner, $ from ${table},
            json_each(case when json_valid(labels) then labels else '{}' end) as each`
      : `found.member[1], owner, $ from ${table},
            regexp_matches(labels, '("(?:[^"\\\\]|\\\\.)*":"(?:[^"\\\\]|\\\\.)*")', 'g') as found(member)`;
  return `select ${members.replace("$", labelled[table])} where labels <> ''`;
}

/** Statements that create and fill the index. */
export function createLabelIndex(types: SqlTypes): string[] {
  const fill = (table: keyof typeof labelled): string =>
    `insert into kms_labels ${selectMembers(types.kind, table)} on conflict do nothing`;
  return [
    createTable(types, labelTable),
    "create index kms_labels_by_owner_key on kms_labels (owner, key_name, key_id)",
    fill("kms_keys"),
    fill("kms_names"),
  ];
}

/** Lists the keys and names with a label that the index lacks, so that lists by label miss them. */
export async function listUnindexed(db: Kysely<Schema>, kind: DatabaseKind): Promise<string[]> {
  const missing = (["kms_keys", "kms_names"] as const).map(
    (table) => `select * from (${selectMembers(kind, table)} except select * from kms_labels) as ${table}`,
  );
  const query = `with missing (member, owner, key_id, key_name) as (${missing.join(" union all ")})
    select distinct key_id, key_name from missing order by key_id, key_name`;
  const { rows } = await sql.raw<Pick<KmsLabelsTable, "key_id" | "key_name">>(query).execute(db);
  return rows.map(({ key_id, key_name }) => (key_id === "" ? `name ${key_name}` : `key ${key_id}`));
}
