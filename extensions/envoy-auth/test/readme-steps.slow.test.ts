/** Follows the page from its first line to its last. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "vitest";
import { testSteps } from "../../../test/interop/readme-steps.ts";

describe("who does what the page shows, as printed but for the ports,", () => {
  testSteps(readFileSync(join(import.meta.dirname, "../README.md"), "utf8"), {
    surroundings: async () => ({}),
    isRepeatable: () => false,
  });
});
