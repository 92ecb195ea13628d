/** Pins migration steps: a released step has already run in users' stores. */
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import type { DatabaseKind } from "../../src/database/connection.ts";
import { listSteps } from "../../src/database/migrations.ts";
import type { TableOwner } from "../../src/database/schema.ts";

/**
 * Tests that the owners have exactly these steps. A new step adds a line; existing lines never change.
 *
 * @param known SHA-256 of each step's statements, without indentation
 */
export function pinSteps(
  owners: readonly TableOwner[],
  known: Readonly<Record<DatabaseKind, Readonly<Record<string, string>>>>,
): void {
  it.each(["sqlite", "postgres"] as const)("the statements of released steps never change: %s", (kind) => {
    const hashes = listSteps(kind, owners).map(([name, statements]) => {
      const text = statements.map((statement) => statement.replaceAll(/\s+/g, " ")).join(";\n");
      return [name, createHash("sha256").update(text).digest("hex").slice(0, 16)];
    });
    expect(Object.fromEntries(hashes)).toEqual(known[kind]);
  });
}
