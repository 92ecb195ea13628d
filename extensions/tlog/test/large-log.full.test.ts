/** The cost of proofs in a log with a million entries. */
import { expect, it } from "vitest";
import { writeLongLog } from "../../../test/support/long-log.ts";
import { makeSqlitePlace } from "../../../test/support/on-both.ts";
import { openAuditLog } from "./open-log.ts";

const entries = 1_000_000;
const proofs = 200;
/** Maximum milliseconds per proof. */
const most = 20;

/** Returns the median duration of calls in milliseconds. */
async function measure(run: (i: number) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < proofs; i++) {
    const startedMs = performance.now();
    await run((i * 7919 * 613) % (entries - 1));
    times.push(performance.now() - startedMs);
  }
  return times.toSorted((a, b) => a - b)[proofs / 2] ?? Number.POSITIVE_INFINITY;
}

// large-log.slow.test.ts verifies proofs of a log with as many levels.
it("with a million entries proves any entry within 20 ms", { timeout: 1_200_000 }, async () => {
  const store = await (await makeSqlitePlace()).open();
  await writeLongLog(store, entries);
  expect((await (await openAuditLog(store)).readCheckpoint()).size).toBe(entries);
  // Reopen the log, so that nothing is cached, as after a restart.
  const log = await openAuditLog(store);
  expect(await measure((index) => log.proveInclusion(index, entries))).toBeLessThan(most);
  expect(await measure((index) => log.proveConsistency(index + 1, entries))).toBeLessThan(most);
});
