/** The background work that signs the audit log. */
import { AsyncLocalStorage } from "node:async_hooks";
import { expect, it, onTestFinished } from "vitest";
import { createCheckpointSchedule } from "../../src/audit/checkpoint-schedule.ts";
import { keyLog } from "../../src/audit/tables.ts";
import { unobserved } from "../../src/database/background.ts";

it("signs outside the context of the call that wrote, so that it is not charged to the call", async () => {
  const context = new AsyncLocalStorage<string>();
  const { promise: signedIn, resolve } = Promise.withResolvers<string | undefined>();
  const schedule = createCheckpointSchedule({
    readTrueHead: async () => {
      resolve(context.getStore());
      return { sequence: 0, entryHash: "" };
    },
    signer: { sign: () => Promise.reject(new Error("an empty log is not signed")) },
    write: async () => {},
    now: () => new Date(0),
    log: keyLog,
    background: unobserved,
  });
  onTestFinished(() => schedule.close());
  context.run("a call", () => schedule.entriesWritten());
  expect(await signedIn).toBeUndefined();
});
