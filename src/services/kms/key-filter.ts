/** The filters of lists of keys for which the store keeps no counts. */
import { sql } from "kysely";
import { listSeenBy, type Principal } from "../../records/ownership.ts";
import type { Narrowing } from "../../records/record-table.ts";
import { nameList, nameNarrowed } from "../../records/table-declaration.ts";
import { formatMember, selectLabelled } from "./label-index.ts";
import { keyTable } from "./tables.ts";

/** Filters of a list of keys; empty for all. */
export interface KeyFilter {
  readonly state: string;
  readonly algorithm: string;
  readonly usage: string;
  readonly name: string;
  /** As "label=value". */
  readonly label: string;
}

/** All keys. */
export const allKeys: KeyFilter = { state: "", algorithm: "", usage: "", name: "", label: "" };

/** Returns the conditions of the filters by usage, name and label; undefined if none of them is set. */
export function narrowKeys({
  usage,
  name,
  label,
}: Pick<KeyFilter, "usage" | "name" | "label">): Narrowing | undefined {
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

/** Names the list of keys that a principal sees, for page tokens. @param narrowing that of the filter if left out */
export function nameKeyList(
  principal: Principal,
  filter: KeyFilter,
  narrowing: Narrowing | undefined = narrowKeys(filter),
): string {
  const { state, algorithm } = filter;
  return nameNarrowed(listSeenBy(principal, nameList(keyTable, { state, algorithm })), narrowing);
}

/** The index finds keys; their records decide. A label is a member of the JSON object in the column of the key, or of its name. A quote in a value is escaped. */
function hasLabel(label: string) {
  const at = label.indexOf("=");
  const member = formatMember(label.slice(0, at), label.slice(at + 1));
  // Unlike "like", "replace" respects upper and lower case in both databases.
  return sql<boolean>`kms_keys.position in (${selectLabelled(member)}) and (replace(kms_keys.labels, ${member}, '') <> kms_keys.labels or exists (
    select 1 from kms_names where kms_names.owner = kms_keys.owner and kms_names.key_name = kms_keys.key_name
      and replace(kms_names.labels, ${member}, '') <> kms_names.labels
  ))`;
}
