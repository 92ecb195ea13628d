/** The cost of proofs in a log with a million entries. */
import { expect, it } from "vitest";
import { hashLeaf } from "../../../src/merkle/hashes.ts";
import { writeEntries } from "../../../test/support/entries.ts";
import { makeSqlitePlace } from "../../../test/support/on-both.ts";
import { createAuditSource } from "../source.ts";
import { verifyConsistency, verifyInclusion } from "../verify-proofs.ts";
import { openAuditLog } from "./open-log.ts";

const entries = 1_000_000;
const perTransaction = 10_000;
const proofs = 200;
/** Maximum milliseconds per proof. */
const most = 20;

/**
 * Runs a function a number of times.
 *
 * @returns the median duration in milliseconds
 */
async function measure(run: (i: number) => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < proofs; i++) {
    const startedMs = performance.now();
    await run(i);
    times.push(performance.now() - startedMs);
  }
  return times.toSorted((a, b) => a - b)[Math.floor(proofs / 2)] ?? Number.POSITIVE_INFINITY;
}

it("with a million entries proves any entry within 20 ms, even before it was read", {
  timeout: 1_200_000,
}, async () => {
  const place = await makeSqlitePlace();
  const store = await place.open();
  for (let i = 0; i < entries; i += perTransaction) await writeEntries(store, perTransaction);

  const startedMs = performance.now();
  let longestMs = 0;
  let lastMs = startedMs;
  const watch = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - lastMs);
    lastMs = performance.now();
  }, 1);
  const { root, size } = await (await openAuditLog(store)).readCheckpoint();
  clearInterval(watch);
  const catchUpSeconds = (performance.now() - startedMs) / 1000;
  expect(size).toBe(entries);

  // Reopen the log, so that nothing is cached, as after a restart.
  const log = await openAuditLog(store);
  const source = createAuditSource(store);
  const leaves = await Promise.all(
    Array.from({ length: proofs }, (_, i) => source.readStored((i * 7919 * 613) % entries, 1)),
  );
  const inclusionMs = await measure(async (i) => {
    const index = (i * 7919 * 613) % entries;
    const hashes = await log.proveInclusion(index, size);
    const leafHash = hashLeaf(leaves[i]?.[0] ?? new Uint8Array());
    expect(verifyInclusion({ index, size, leafHash, hashes, root })).toBe(true);
  });
  const consistencyMs = await measure(async (i) => {
    const from = 1 + ((i * 7919 * 613) % (entries - 1));
    const hashes = await log.proveConsistency(from, size);
    if (i % 20 > 0) return;
    const fromRoot = await log.computeRoot(from);
    expect(verifyConsistency({ from, to: size, fromRoot, toRoot: root, hashes })).toBe(true);
  });
  const figures = {
    catchUpSeconds: catchUpSeconds.toFixed(1),
    longestPauseMs: longestMs.toFixed(0),
    inclusionMs: inclusionMs.toFixed(1),
    consistencyMs: consistencyMs.toFixed(1),
  };
  console.log(figures);
  expect(inclusionMs).toBeLessThan(most);
  expect(consistencyMs).toBeLessThan(most);
});
