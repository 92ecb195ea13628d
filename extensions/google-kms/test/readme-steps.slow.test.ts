/** Runs every command in README.md, from the first line to the last. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { testSteps } from "../../../test/interop/readme-steps.ts";
import { type RunningServer, startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

let server: RunningServer;
beforeAll(async () => {
  server = await startServer({ dataDir: makeTemporaryDirectory(afterAll) });
}, 180_000);
afterAll(() => server.stop());

describe("the commands of README.md, as printed except for the port,", () => {
  testSteps(readFileSync(join(import.meta.dirname, "../README.md"), "utf8"), {
    surroundings: () => ({ authority: server.authority }),
    isRepeatable: () => process.env.QSP_TEST_LONG === "1",
  });
});
