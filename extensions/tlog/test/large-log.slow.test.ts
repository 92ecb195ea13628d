/** The cost of a log's proofs in store reads, independent of the log's size. */
import { Worker } from "node:worker_threads";
import { expect, it, vi } from "vitest";
import { hashLeaf } from "../../../src/merkle/hashes.ts";
import { writeLongLog } from "../../../test/support/long-log.ts";
import { makeSqlitePlace } from "../../../test/support/on-both.ts";
import { createAuditSource } from "../source.ts";
import { verifyConsistency, verifyInclusion } from "../verify-proofs.ts";
import { openAuditLog } from "./open-log.ts";

/** More than 65,536, so that the tree has three levels of tiles. */
const entries = 70_000;
const proofs = 50;
/** A proof needs a few tiles per level, and a leaf tile needs its root too. */
const mostReads = 6;

it("with 70,000 entries proves any entry with six reads, even before it was read", async () => {
  const store = await (await makeSqlitePlace()).open();
  await writeLongLog(store, entries);
  const { root, size } = await (await openAuditLog(store)).readCheckpoint();
  expect(size).toBe(entries);
  const source = createAuditSource(store);
  // Each SQLite read is a message to the store's thread.
  const posted = vi.spyOn(Worker.prototype, "postMessage");
  const counts: number[] = [];
  const countReads = async (work: () => Promise<Uint8Array[]>) => {
    const before = posted.mock.calls.length;
    const hashes = await work();
    counts.push(posted.mock.calls.length - before);
    return hashes;
  };

  for (let i = 0; i < proofs; i += 1) {
    // Reopen the log, so that nothing is cached. The closed one publishes nothing in the background.
    const [log, other] = [await openAuditLog(store), await openAuditLog(store)];
    await log.close();
    await other.close();
    const index = (i * 7919 * 613) % entries;
    const [leaf = new Uint8Array()] = await source.readStored(index, 1);
    const path = await countReads(() => log.proveInclusion(index, size));
    expect(verifyInclusion({ index, size, leafHash: hashLeaf(leaf), hashes: path, root })).toBe(true);
    const from = index + 1;
    const hashes = await countReads(() => other.proveConsistency(from, size));
    const fromRoot = await log.computeRoot(from);
    expect(verifyConsistency({ from, to: size, fromRoot, toRoot: root, hashes })).toBe(true);
  }
  // The store occasionally signs its own checkpoint, whose reads are counted with one or two proofs.
  const [, , most = 0] = counts.toSorted((a, b) => b - a);
  expect(most).toBeLessThanOrEqual(mostReads);
  expect(Math.min(...counts)).toBeGreaterThan(0);
});
