import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { drivers } from "./drivers.ts";
import { rows, settle } from "./rows.ts";
import { isMissing } from "./tools.ts";

const dataDir = makeTemporaryDirectory(afterAll);
let server: RunningServer;
let token: string;
beforeAll(async () => {
  server = await startServer({ dataDir });
  const response = await fetch(`${server.url}/api/auth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "ada" }),
  });
  ({ token } = (await response.json()) as { token: string });
});
afterAll(() => server.stop());

describe.each(drivers)("$name", ({ name, program = "node", call }) => {
  const title = isMissing(program)
    ? `needs ${program}, which is not installed`
    : "gets what the contract says";
  describe.skipIf(isMissing(program))(title, () => {
    it.concurrent.each(rows)("$service $method $title", { timeout: 120_000 }, async (row) => {
      const outcome = await call(server.url, row, token);
      if (row.refusal) expect(outcome, name).toEqual({ refusal: row.refusal });
      else expect("answer" in outcome ? settle(outcome.answer) : outcome, name).toEqual(row.answer);
    });
  });
});
