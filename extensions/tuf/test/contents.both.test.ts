/** Contents in the database: what is stored, what is read, and what is removed when. */
import { createHash, randomBytes } from "node:crypto";
import { DefaultQueryExecutor } from "kysely";
import { expect, it, onTestFinished, vi } from "vitest";
import { copyStore } from "../../../src/database/copy.ts";
import { sqliteIn } from "../../../src/database/database.ts";
import type { Store } from "../../../src/store/store.ts";
import { describeStores } from "../../../test/support/on-both.ts";
import { openDatabase } from "../../../test/support/open-store.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { type Content, createContentStore } from "../contents.ts";

const pieceBytes = 256 * 1024;
const owner = "user:ada";

/** Contents of a store, with a clock that the test sets. */
function openContents(store: Store, limits = { perTarget: 0, perOwner: 0 }) {
  const clock = { nowMs: Date.now() };
  const contents = createContentStore(store, limits, () => new Date(clock.nowMs));
  const keep = (content: Content) => store.write((transaction) => contents.keep(transaction, owner, content));
  return { ...contents, clock, keep };
}

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(part);
  return Buffer.concat(all);
}

async function countRows(store: Store): Promise<number> {
  const rows = await store.reader.selectFrom("tuf_pieces").select("piece_index").execute();
  const contents = await store.reader.selectFrom("tuf_contents").select("content_id").execute();
  return rows.length + contents.length;
}

describeStores("contents", (makePlace) => {
  it.each([1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes, 3 * pieceBytes + 7])(
    "of %i bytes come back, with both hashes, however they were cut",
    async (length) => {
      const contents = openContents(await (await makePlace()).open());
      const bytes = randomBytes(length);
      for (const size of [length, 100_000, pieceBytes]) {
        const content = await contents.write(owner, chunksOf(bytes, size));
        expect(content.length).toBe(length);
        for (const name of ["sha256", "sha512"] as const)
          expect(Buffer.from(content[name])).toEqual(createHash(name).update(bytes).digest());
        expect((await collect(contents.read(content.contentId, { from: 0, to: length }))).equals(bytes)).toBe(
          true,
        );
      }
    },
  );

  it("are backed up a few pieces at a time", async () => {
    const place = await makePlace();
    const store = await place.open();
    await openContents(store).write(owner, chunksOf(randomBytes(20 * pieceBytes), 1e6));
    await store.close();
    const source = await openDatabase(place.location, "existing");
    const target = await openDatabase(sqliteIn(makeTemporaryDirectory()), "create");
    const copied = [0];
    await copyStore(source, target, (rows) => copied.push(rows));
    await Promise.all([source.close(), target.close()]);
    const chunks = copied.slice(1).map((rows, i) => rows - (copied[i] ?? 0));
    expect(Math.max(...chunks)).toBe(8);
  });

  it("are read one piece at a time for a caller, whose downloads would otherwise delay all reads", async () => {
    const contents = openContents(await (await makePlace()).open());
    const content = await contents.write(owner, chunksOf(randomBytes(3 * pieceBytes), 1e6));
    const { executeQuery } = DefaultQueryExecutor.prototype;
    let running = 0;
    const counts: number[] = [];
    const spy = vi.spyOn(DefaultQueryExecutor.prototype, "executeQuery").mockImplementation(async function (
      this: DefaultQueryExecutor,
      query,
      options,
    ) {
      // The store reads in the background, too.
      if (!query.sql.includes("tuf_pieces")) return (await executeQuery.call(this, query, options)) as never;
      counts.push(++running);
      const result = await executeQuery.call(this, query, options);
      running -= 1;
      return result as never;
    });
    onTestFinished(() => spy.mockRestore());
    const range = { from: 0, to: content.length };
    await Promise.all([1, 2, 3].map(() => Array.fromAsync(contents.read(content.contentId, range))));
    expect(counts).toEqual(Array(9).fill(1));
  });

  it("are read in part, without the pieces before and after", async () => {
    const contents = openContents(await (await makePlace()).open());
    const bytes = randomBytes(3 * pieceBytes + 7);
    const { contentId } = await contents.write(owner, chunksOf(bytes, 1e6));
    const { length } = bytes;
    const edges = [0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes, length - 1, length];
    for (const from of edges)
      for (const to of edges.filter((edge) => edge >= from))
        expect((await collect(contents.read(contentId, { from, to }))).equals(bytes.subarray(from, to))).toBe(
          true,
        );
  });

  it("stay if a target needs them, and go an hour after an upload stopped", async () => {
    const store = await (await makePlace()).open();
    const contents = openContents(store);
    const kept = await contents.write(owner, chunksOf(randomBytes(10), 10));
    await contents.keep(kept);
    await contents.write(owner, chunksOf(randomBytes(20 * pieceBytes), pieceBytes));
    await contents.sweep();
    expect(await countRows(store)).toBe(2 + 21);
    contents.clock.nowMs += 3600_000;
    await contents.sweep();
    expect(await countRows(store)).toBe(2);
    await store.write((transaction) => contents.remove(transaction, [kept.contentId]));
    await contents.sweep();
    expect(await countRows(store)).toBe(0);
  });

  it("of a stream that breaks are removed at once", async () => {
    const store = await (await makePlace()).open();
    const contents = openContents(store);
    async function* broken() {
      yield randomBytes(pieceBytes);
      throw new Error("the caller left");
    }
    await expect(contents.write(owner, broken())).rejects.toThrow("the caller left");
    expect(await countRows(store)).toBe(0);
  });

  it("that the sweep removed cannot become a target", async () => {
    const contents = openContents(await (await makePlace()).open());
    const content = await contents.write(owner, chunksOf(randomBytes(10), 10));
    contents.clock.nowMs += 3600_000;
    await contents.sweep();
    await expect(contents.keep(content)).rejects.toThrow("was removed");
  });

  it("that the sweep removes during an upload do not continue", async () => {
    const store = await (await makePlace()).open();
    const contents = openContents(store);
    async function* paused() {
      yield randomBytes(pieceBytes);
      contents.clock.nowMs += 3600_000;
      await contents.sweep();
      yield randomBytes(pieceBytes);
    }
    await expect(contents.write(owner, paused())).rejects.toThrow("was removed");
    expect(await countRows(store)).toBe(0);
  });

  it("of a target stay if its upload is discarded", async () => {
    const store = await (await makePlace()).open();
    const contents = openContents(store);
    const content = await contents.write(owner, chunksOf(randomBytes(10), 10));
    await contents.keep(content);
    await contents.discard(content.contentId);
    expect(await countRows(store)).toBe(2);
  });

  it("with a missing piece are damaged, and end before it", async () => {
    const store = await (await makePlace()).open();
    const contents = openContents(store);
    const { contentId, length } = await contents.write(owner, chunksOf(randomBytes(2 * pieceBytes), 1e6));
    await store.write(async ({ db }) => {
      await db.deleteFrom("tuf_pieces").where("piece_index", "=", 1).execute();
    });
    await expect(collect(contents.read(contentId, { from: 0, to: length }))).rejects.toThrow("piece 1");
  });

  it("beyond the limit of a target are refused, even if the stream never ends", async () => {
    const store = await (await makePlace()).open();
    const contents = openContents(store, { perTarget: 3 * pieceBytes, perOwner: 0 });
    async function* endless() {
      for (;;) yield randomBytes(100_000);
    }
    expect(await refusal(contents.write(owner, endless()))).toEqual({
      code: "ResourceExhausted",
      reason: "TARGET_TOO_LARGE",
    });
    expect(await countRows(store)).toBe(0);
    expect((await contents.write(owner, chunksOf(randomBytes(3 * pieceBytes), 1e6))).length).toBe(
      3 * pieceBytes,
    );
  });

  it("use their owner's quota, together with running uploads, until they are removed", async () => {
    const store = await (await makePlace()).open();
    const contents = openContents(store, { perTarget: 0, perOwner: 3 * pieceBytes });
    const exceeded = { code: "ResourceExhausted", reason: "QUOTA_EXCEEDED" };
    const content = await contents.write(owner, chunksOf(randomBytes(2 * pieceBytes), pieceBytes));
    await contents.keep(content);
    const tooMuch = await contents.write(owner, chunksOf(randomBytes(2 * pieceBytes), pieceBytes));
    expect(await refusal(contents.keep(tooMuch))).toEqual(exceeded);
    expect(await refusal(contents.write(owner, chunksOf(randomBytes(1), 1)))).toEqual(exceeded);
    await contents.write("user:bob", chunksOf(randomBytes(1), 1));
    await store.write((transaction) => contents.remove(transaction, [tooMuch.contentId]));
    await contents.write(owner, chunksOf(randomBytes(pieceBytes), pieceBytes));
  });
});
