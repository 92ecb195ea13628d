import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { testSteps } from "./readme-steps.ts";

const root = join(import.meta.dirname, "../..");

const dataDir = makeTemporaryDirectory(afterAll);
let server: RunningServer;
beforeAll(async () => {
  server = await startServer({ dataDir });
}, 180_000);
afterAll(() => server.stop());

for (const page of globSync("src/services/*/README.md", { cwd: root }).sort()) {
  describe(`the commands of ${page}, as printed except for the port,`, () => {
    testSteps(readFileSync(join(root, page), "utf8"), {
      surroundings: () => ({ authority: server.authority }),
      isRepeatable: () => process.env.QSP_TEST_LONG === "1",
    });
  });
}
