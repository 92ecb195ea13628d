/** Follows the README from its first line to its last. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "vitest";
import { freshDatabaseUrl, sharedPostgres } from "../postgres/shared.ts";
import { testSteps } from "./readme-steps.ts";

const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");

/** Sections that set a store up: a second role, user or certificate of the same name is refused. */
const setUpOnce = ["## Two servers behind Envoy, on PostgreSQL", "## Operate it"];

describe("who does what the README shows, as printed but for the ports,", () => {
  testSteps(readme, {
    surroundings: async () => ({
      ...(sharedPostgres() !== undefined && { databaseUrl: await freshDatabaseUrl() }),
    }),
    isRepeatable: ({ section }) => !setUpOnce.includes(section),
  });
});
