/** Shows how SQLite executes queries. */
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import type { Schema } from "../../../src/database/schema.ts";
import type { Place, Value } from "../../support/on-both.ts";

/** Lists the steps of all query plans; the work sees no rows. */
export async function listPlan(
  place: Place,
  work: (reader: Kysely<Schema>) => Promise<unknown>,
): Promise<string[]> {
  const queries: CompiledQuery[] = [];
  const reader = new Kysely<Schema>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createDriver: () => new DummyDriver(),
    },
    log: ({ query }) => void queries.push(query),
  });
  await work(reader);
  const plans = queries.map(({ sql, parameters }) => {
    let placed = 0;
    const numbered = sql.replaceAll("?", () => `$${++placed}`);
    return place.query(`explain query plan ${numbered}`, parameters as Value[]);
  });
  return (await Promise.all(plans)).flat().map(({ detail }) => String(detail));
}
