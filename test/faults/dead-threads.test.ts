import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { refusal } from "../support/refusal.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { startKmsServer } from "./kms-server.ts";

const hook = pathToFileURL(join(import.meta.dirname, "end-threads.mjs")).href;
const env = { NODE_OPTIONS: `--import=${hook}` };
const unavailable = { code: "Unavailable", reason: "STORE_UNAVAILABLE" };

it("a server whose SQLite threads keep ending stops with exit code 4 and one line with the reason", async () => {
  const server = await startKmsServer({ dataDir: makeTemporaryDirectory(), env });
  const { keyId } = (await server.kms.createKey({ algorithm: "ML-DSA-44" })).result ?? { keyId: "" };
  server.process.kill("SIGUSR2");
  const sign = () => refusal(server.kms.sign({ keyId, data: Buffer.from("message") })).catch(() => undefined);
  expect(await sign()).toEqual(unavailable);
  // Its polls of the store fail in the same way, so it stops even without calls.
  const { code, stderr } = await server.exit;
  const fatal = stderr.split("\n").filter((line) => line.includes('"level":60'));
  expect(fatal).toEqual([expect.stringContaining("the store has become unusable; the server stops")]);
  expect(code).toBe(4);
});
