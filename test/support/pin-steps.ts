/** Pins migration steps: a released step has already run in users' stores. */
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import type { DatabaseKind } from "../../src/database/connection.ts";
import { listSteps } from "../../src/database/migrations.ts";
import type { TableOwner } from "../../src/database/schema.ts";
import { loadPackages } from "./whole-program.ts";

/** Steps by name, each with a hash of its statements. */
type Hashes = Readonly<Record<string, string>>;

/**
 * Tests that the owners have exactly these steps. A new step adds a line; existing lines never change.
 *
 * @param known SHA-256 of each step's statements, without indentation
 */
export function pinSteps(owners: readonly TableOwner[], known: Readonly<Record<DatabaseKind, Hashes>>): void {
  it.each(["sqlite", "postgres"] as const)(
    "the statements of released steps never change: %s",
    async (kind) => {
      const hashes = listSteps(kind, owners).map(([name, statements]) => {
        const text = statements.map((statement) => statement.replaceAll(/\s+/g, " ")).join(";\n");
        return [name, createHash("sha256").update(text).digest("hex").slice(0, 16)];
      });
      const packages = await loadPackages();
      const all = (await Promise.all(packages.map(({ tables }) => tables?.()))).filter(
        (owner) => owner !== undefined,
      );
      const names = [...owners, ...all].flatMap(({ steps }) => Object.keys(steps));
      expect(findStepFaults(Object.fromEntries(hashes), known[kind], names)).toEqual([]);
    },
  );
}

/**
 * Says what to do about each step that differs from the known ones.
 *
 * @param names all steps of the program
 */
export function findStepFaults(found: Hashes, known: Hashes, names: readonly string[]): string[] {
  const last = names.filter((name) => name in known || !(name in found)).reduce(takeHigher, "0000");
  const gone = Object.keys(known).filter((name) => !(name in found));
  return [
    ...gone.map((name) => `${name} is missing: a released step stays`),
    ...Object.entries(found).flatMap(([name, hash]) => {
      if (known[name] === hash) return [];
      if (known[name] !== undefined)
        return [`${name} has changed: a released step never changes; add a new step instead`];
      if (readNumber(name) <= readNumber(last)) return [`${name} is new: its number must be above ${last}`];
      return [`${name} is new: add "${name}": "${hash}" to the known steps`];
    }),
  ];
}

function readNumber(name: string): number {
  return Number.parseInt(name, 10);
}

function takeHigher(one: string, other: string): string {
  return readNumber(other) > readNumber(one) ? other : one;
}
