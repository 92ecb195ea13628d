/** Follows the README and the guides from beginning to end. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "vitest";
import { freshDatabaseUrl, hasPostgres } from "../support/postgres.ts";
import { testSteps } from "./readme-steps.ts";

const root = join(import.meta.dirname, "../..");

/** Sections that set up a store: a second role, user or certificate with the same name is rejected. */
const setUpOnce = [
  "## Two servers behind Envoy, on PostgreSQL",
  "## Store, keys, backup",
  "## A backup drill",
  "## A restore drill",
  "## Replicas",
  "## Health, metrics, logs",
];

/** Pages that a reader follows more than once. */
const readAgain = ["README.md", ...(process.env.QSP_TEST_LONG === "1" ? ["docs/getting-started.md"] : [])];

describe.each([
  "README.md",
  "docs/getting-started.md",
  "docs/command-line.md",
  "docs/keys.md",
  "docs/signatures.md",
  "docs/invoices.md",
  "docs/deploy.md",
  "docs/observe.md",
  "docs/operate.md",
])("the commands of %s, as printed except for the ports,", (page) => {
  testSteps(readFileSync(join(root, page), "utf8"), {
    surroundings: async () => (hasPostgres() ? { databaseUrl: await freshDatabaseUrl() } : {}),
    isRepeatable: ({ section }) => readAgain.includes(page) && !setUpOnce.includes(section),
  });
});
