/** Runs every command in README.md, from the first line to the last. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "vitest";
import { testSteps } from "../../../test/interop/readme-steps.ts";
import { useRunningServer } from "../../../test/support/running-server.ts";

const server = useRunningServer();

describe("the commands of README.md, as printed except for the port,", () => {
  testSteps(readFileSync(join(import.meta.dirname, "../README.md"), "utf8"), {
    surroundings: () => ({ authority: server().authority }),
    isRepeatable: () => process.env.QSP_TEST_LONG === "1",
  });
});
