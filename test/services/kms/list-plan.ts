/** Shows how SQLite executes queries. */
import { Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import type { Schema } from "../../../src/database/schema.ts";
import type { Place, Value } from "../../support/on-both.ts";

/** Lists the steps of all query plans; the work sees no rows. */
export async function listPlan(
  place: Place,
  work: (reader: Kysely<Schema>) => Promise<unknown>,
): Promise<string[]> {
  const steps: string[] = [];
  const reader = new Kysely<Schema>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createDriver: () => ({
        init: async () => {},
        acquireConnection: async () => ({
          async executeQuery({ sql, parameters }) {
            let placed = 0;
            const numbered = sql.replaceAll("?", () => `$${++placed}`);
            const rows = await place.query(`explain query plan ${numbered}`, parameters as Value[]);
            steps.push(...rows.map(({ detail }) => String(detail)));
            return { rows: [] };
          },
          streamQuery() {
            throw new Error("not here");
          },
        }),
        beginTransaction: async () => {},
        commitTransaction: async () => {},
        rollbackTransaction: async () => {},
        releaseConnection: async () => {},
        destroy: async () => {},
      }),
    },
  });
  await work(reader);
  return steps;
}
