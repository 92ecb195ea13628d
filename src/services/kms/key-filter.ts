/** Key list filters for which the store keeps no counts. */
import { sql } from "kysely";
import type { ListQuery, Narrowing } from "../../records/record-table.ts";
import { formatMember, selectLabelled } from "./label-index.ts";
import type { keyTable } from "./tables.ts";

/** Filters of a key list; empty or omitted filters match all keys. */
export interface KeyFilter {
  readonly state?: string;
  readonly algorithm?: string;
  readonly usage?: string;
  readonly name?: string;
  /** As "label=value". */
  readonly label?: string;
}

export interface KeyQuery extends Omit<KeyListQuery, "filters"> {
  readonly filter?: KeyFilter;
}

type KeyListQuery = ListQuery<typeof keyTable.columns>;

/** Builds the table query. A given narrowing replaces the one from the filters. */
export function toListQuery({
  filter = {},
  narrowing = narrowKeys(filter),
  ...query
}: KeyQuery): KeyListQuery {
  const { state = "", algorithm = "" } = filter;
  return { ...query, narrowing, filters: { state, algorithm } };
}

/** Returns the conditions for usage, name and label; undefined if none of them is set. */
export function narrowKeys({ usage = "", name = "", label = "" }: KeyFilter): Narrowing | undefined {
  const conditions = [
    ...(usage ? [sql<boolean>`key_usage = ${usage}`] : []),
    ...(name ? [sql<boolean>`key_name = ${name}`] : []),
    ...(label ? [hasLabel(label)] : []),
  ];
  if (conditions.length === 0) return undefined;
  return {
    name: JSON.stringify([usage, name, label]),
    where: sql<boolean>`(${sql.join(conditions, sql` and `)})`,
  };
}

/**
 * The index finds candidates; their records decide. A label is a member of the JSON object in the column of
 * the key or its name. Quotes in values are escaped.
 */
function hasLabel(label: string) {
  const at = label.indexOf("=");
  const member = formatMember(label.slice(0, at), label.slice(at + 1));
  // Unlike "like", "replace" is case-sensitive in both databases.
  return sql<boolean>`kms_keys.position in (${selectLabelled(member)}) and (replace(kms_keys.labels, ${member}, '') <> kms_keys.labels or exists (
    select 1 from kms_names where kms_names.owner = kms_keys.owner and kms_names.key_name = kms_keys.key_name
      and replace(kms_names.labels, ${member}, '') <> kms_names.labels
  ))`;
}
