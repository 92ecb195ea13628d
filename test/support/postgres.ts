/** Fresh databases for test files, on one PostgreSQL server for the whole run. */
import { describe, inject } from "vitest";
import type { DatabaseLocation } from "../../src/database/database.ts";
import { postgresNeeded } from "./postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The databases on which this project runs its tests; set in vitest.config.ts. */
    databases: readonly DatabaseLocation["kind"][];
  }
}

/** Whether the current project runs tests on this database. */
export function runsOn(kind: DatabaseLocation["kind"]): boolean {
  return inject("databases").includes(kind);
}

/** Whether PostgreSQL is installed; global-setup.ts manages one server for the run. */
export function hasPostgres(): boolean {
  return inject("postgresDesk") !== undefined;
}

/** Creates an empty database on this run's server once it is ready, and returns its URL. */
export async function freshDatabaseUrl(): Promise<string> {
  const desk = inject("postgresDesk");
  if (desk === undefined) throw new Error(postgresNeeded);
  const response = await fetch(`${desk}/${process.pid}`, { method: "POST" });
  const answer = await response.text();
  if (!response.ok) throw new Error(`no database: ${answer}`);
  return answer;
}

/**
 * Describes tests that need PostgreSQL, which are slow tests. If it is not installed, they are skipped visibly; with
 * QSP_TEST_REQUIRE_ALL=1, they run and fail.
 */
export function describePostgres(name: string, define: () => void): void {
  if (!runsOn("postgres")) return;
  const isSkipped = process.env.QSP_TEST_REQUIRE_ALL !== "1" && !hasPostgres();
  describe.skipIf(isSkipped)(isSkipped ? `${name}: ${postgresNeeded}` : name, define);
}
