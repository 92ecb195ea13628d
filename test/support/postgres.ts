/** For test files that just need a database: fresh ones, on one PostgreSQL server for the whole run. */
import { describe, inject } from "vitest";
import type { DatabaseLocation } from "../../src/database/database.ts";
import { postgresNeeded } from "./postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where the tests of this project keep stores: vitest.config.ts says. */
    databases: readonly DatabaseLocation["kind"][];
  }
}

/** Whether tests on this database belong to the project that runs. */
export function runsOn(kind: DatabaseLocation["kind"]): boolean {
  return inject("databases").includes(kind);
}

/** A PostgreSQL server that all test files of a run share. */
export interface SharedPostgres {
  /** Creates an empty database, once the server is ready; returns its URL. */
  freshDatabaseUrl(): Promise<string>;
}

/** The server of this run, which global-setup.ts keeps; undefined when PostgreSQL is not installed. */
export function sharedPostgres(): SharedPostgres | undefined {
  const desk = inject("postgresDesk");
  if (desk === undefined) return undefined;
  return {
    freshDatabaseUrl: async () => {
      const response = await fetch(`${desk}/${process.pid}`, { method: "POST" });
      const answer = await response.text();
      if (!response.ok) throw new Error(`no database: ${answer}`);
      return answer;
    },
  };
}

/** Creates an empty database on the server of this run, once that is ready; returns its URL. */
export async function freshDatabaseUrl(): Promise<string> {
  const postgres = sharedPostgres();
  if (postgres === undefined) throw new Error(postgresNeeded);
  return postgres.freshDatabaseUrl();
}

/**
 * Describes tests that need PostgreSQL, which are slow tests. They are skipped, and say so, when it is not installed;
 * with QSP_TEST_REQUIRE_ALL=1 they run, and fail.
 */
export function describePostgres(name: string, define: () => void): void {
  if (!runsOn("postgres")) return;
  const isSkipped = process.env.QSP_TEST_REQUIRE_ALL !== "1" && sharedPostgres() === undefined;
  describe.skipIf(isSkipped)(isSkipped ? `${name}: ${postgresNeeded}` : name, define);
}
