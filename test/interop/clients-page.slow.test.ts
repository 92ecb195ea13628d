import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { testSteps } from "./readme-steps.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/clients.md"), "utf8");
/** The section that all others build on. */
const first = "The protos";

const dataDir = makeTemporaryDirectory(afterAll);
let server: RunningServer;
beforeAll(async () => {
  server = await startServer({ dataDir });
}, 180_000);
afterAll(() => server.stop());

/** Returns the page with one other section. Line numbers stay the same. */
function only(heading: string): string {
  return page
    .split(/^(?=## )/m)
    .map((section) =>
      [first, heading].some((kept) => section.startsWith(`## ${kept}\n`))
        ? section
        : section.replaceAll(/[^\n]/g, ""),
    )
    .join("");
}

for (const heading of ["Python", "Go", "Ruby", "TypeScript", "Requests by QUERY", "Without generated code"])
  testSection(heading);
// Each takes a minute or more to compile, with tools that Debian lacks or has in old versions. To run both:
// QSP_TEST_LANGUAGES=Java,Rust npx vitest run test/interop/clients-page.slow.test.ts
for (const heading of process.env.QSP_TEST_LANGUAGES?.split(",") ?? []) testSection(heading);

function testSection(heading: string): void {
  describe(`docs/clients.md, ${heading}: the printed output is correct for`, () => {
    testSteps(only(heading), {
      surroundings: () => ({ authority: server.authority }),
      isWithoutCheckout: true,
    });
  });
}
