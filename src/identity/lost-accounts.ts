/** Finds users and clients that are in the identity log but missing from the store. */
import type { Reader } from "../database/database.ts";
import { changes } from "./tables.ts";

/** The operations that begin and end accounts. */
const kinds = [
  { noun: "user", table: "users", begins: "CREATE_USER", ends: "REMOVE_USER" },
  { noun: "client", table: "oauth_clients", begins: "CREATE_CLIENT", ends: "REMOVE_CLIENT" },
] as const;

/** Lists accounts that were created and not removed, but have no row: "user ada". */
export async function listLostAccounts(reader: Reader): Promise<string[]> {
  const lost: string[] = [];
  for (const { noun, table, begins, ends } of kinds) {
    const entries = await reader
      .selectFrom("identity_entries")
      .select(["key_id", "operation"])
      .where(changes)
      .where("operation", "in", [begins, ends])
      .where("key_id", "not in", (from) => from.selectFrom(table).select(`${table}.name`))
      .orderBy("sequence")
      .execute();
    const last = new Map(entries.map(({ key_id, operation }) => [key_id, operation]));
    for (const [name, operation] of last) if (operation === begins) lost.push(`${noun} ${name}`);
  }
  return lost;
}
