/** Contents in the database: what is stored, what is read, and what is removed when. */
import { createHash, randomBytes } from "node:crypto";
import { DefaultQueryExecutor } from "kysely";
import { expect, it, onTestFinished, vi } from "vitest";
import { copyStore } from "../../../src/database/copy.ts";
import { sqliteIn } from "../../../src/database/database.ts";
import { present } from "../../../test/services/answers.ts";
import { describeStores } from "../../../test/support/on-both.ts";
import { openDatabase } from "../../../test/support/open-store.ts";
import { pinSteps } from "../../../test/support/pin-steps.ts";
import { outcomeOf } from "../../../test/support/refusal.ts";
import { streamOf } from "../../../test/support/streams.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { type Content, createContentStore } from "../contents.ts";
import { tufPackage } from "../package.ts";

const pieceBytes = 256 * 1024;
const owner = "user:ada";
const hour = 3600_000;

pinSteps([present(await tufPackage.tables?.())], {
  sqlite: { "0010-tuf": "e93d860e51c44e06", "0011-tuf-contents": "47c9e97627aa774e" },
  postgres: { "0010-tuf": "5d85aeedffb8da40", "0011-tuf-contents": "9b5c62cf9647e266" },
});

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(parts));
}

describeStores("contents", (makePlace) => {
  /** Contents of a new store, with a clock that the test sets. */
  async function openContents(limits = { perTarget: 0, perOwner: 0 }) {
    const place = await makePlace();
    const store = await place.open();
    const clock = { nowMs: Date.now() };
    const contents = createContentStore(store, limits, () => new Date(clock.nowMs));
    return {
      ...{ ...contents, place, store, clock },
      keep: (content: Content) => store.write((transaction) => contents.keep(transaction, owner, content)),
      remove: ({ contentId }: Content) =>
        store.write((transaction) => contents.remove(transaction, [contentId])),
      /** Writes random bytes. */
      upload: (length: number) => contents.write(owner, chunksOf(randomBytes(length), 1e6)),
      async countRows() {
        const pieces = await store.reader.selectFrom("tuf_pieces").select("piece_index").execute();
        const rows = await store.reader.selectFrom("tuf_contents").select("content_id").execute();
        return pieces.length + rows.length;
      },
    };
  }

  it.each([1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes, 3 * pieceBytes + 7])(
    "of %i bytes come back, whole and in part, with both hashes, however they were cut",
    async (length) => {
      const { write, read } = await openContents();
      const bytes = randomBytes(length);
      for (const size of [length, 100_000, pieceBytes]) {
        const content = await write(owner, chunksOf(bytes, size));
        expect(content.length).toBe(length);
        for (const name of ["sha256", "sha512"] as const)
          expect(Buffer.from(content[name])).toEqual(createHash(name).update(bytes).digest());
        const edges = [0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes, length];
        for (const from of edges.filter((edge) => edge < length))
          for (const to of edges.filter((edge) => edge > from && edge <= length)) {
            const found = await collect(read(content.contentId, { from, to }));
            expect(found.equals(bytes.subarray(from, to))).toBe(true);
          }
      }
    },
  );

  it("are backed up a few pieces at a time", async () => {
    const { place, store, upload } = await openContents();
    await upload(20 * pieceBytes);
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
    const { read, upload } = await openContents();
    const { contentId, length } = await upload(3 * pieceBytes);
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
    await Promise.all([1, 2, 3].map(() => collect(read(contentId, { from: 0, to: length }))));
    expect(counts).toEqual(Array(9).fill(1));
  });

  it("stay if a target needs them, and go an hour after an upload stopped", async () => {
    const { clock, keep, discard, remove, sweep, upload, countRows } = await openContents();
    const kept = await upload(10);
    await keep(kept);
    await discard(kept.contentId);
    const stopped = await upload(20 * pieceBytes);
    await sweep();
    expect(await countRows()).toBe(2 + 21);
    clock.nowMs += hour;
    await sweep();
    expect(await countRows()).toBe(2);
    await expect(keep(stopped)).rejects.toThrow("was removed");
    await remove(kept);
    await sweep();
    expect(await countRows()).toBe(0);
  });

  it("of a stream that breaks are removed at once, and those that the sweep removes do not continue", async () => {
    const { clock, sweep, write, countRows } = await openContents();
    async function* interrupted(interrupt: () => Promise<void>) {
      yield randomBytes(pieceBytes);
      await interrupt();
      yield randomBytes(pieceBytes);
    }
    const leave = () => Promise.reject(new Error("the caller left"));
    await expect(write(owner, interrupted(leave))).rejects.toThrow("the caller left");
    expect(await countRows()).toBe(0);
    const pause = () => {
      clock.nowMs += hour;
      return sweep();
    };
    await expect(write(owner, interrupted(pause))).rejects.toThrow("was removed");
    expect(await countRows()).toBe(0);
  });

  it("with a missing piece are damaged, and end before it", async () => {
    const { place, read, upload } = await openContents();
    const { contentId, length } = await upload(2 * pieceBytes);
    await place.query("delete from tuf_pieces where piece_index = 1");
    await expect(collect(read(contentId, { from: 0, to: length }))).rejects.toThrow("piece 1");
  });

  it("beyond the limit of a target are refused, even if the stream never ends", async () => {
    const perTarget = 3 * pieceBytes;
    const { write, upload, countRows } = await openContents({ perTarget, perOwner: 0 });
    async function* endless() {
      for (;;) yield randomBytes(100_000);
    }
    expect(await outcomeOf(write(owner, endless()))).toBe("TARGET_TOO_LARGE");
    expect(await countRows()).toBe(0);
    expect((await upload(perTarget)).length).toBe(perTarget);
  });

  it("use their owner's quota, together with running uploads, until they are removed", async () => {
    const { keep, remove, write, upload } = await openContents({ perTarget: 0, perOwner: 3 * pieceBytes });
    await keep(await upload(2 * pieceBytes));
    const tooMuch = await upload(2 * pieceBytes);
    expect(await outcomeOf(keep(tooMuch))).toBe("QUOTA_EXCEEDED");
    expect(await outcomeOf(upload(1))).toBe("QUOTA_EXCEEDED");
    await write("user:bob", streamOf(randomBytes(1)));
    await remove(tooMuch);
    await upload(pieceBytes);
  });
});
