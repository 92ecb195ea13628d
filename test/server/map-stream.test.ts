import { describe, expect, it } from "vitest";
import { endOnAbort, mapStream, untilAborted } from "../../src/server/interceptors/streams.ts";

async function* count(): AsyncGenerator<number> {
  yield 1;
  yield 2;
}

describe("a mapped stream", () => {
  it.each([0, 1, 3])("ends once when its call is aborted after %i reads", async (reads) => {
    const ends: unknown[] = [];
    const abort = new AbortController();
    const end = (thrown?: unknown): void => void ends.push(thrown);
    const messages = endOnAbort(mapStream(count(), { end }), abort.signal)[Symbol.asyncIterator]();
    for (let i = 0; i < reads; i += 1) await messages.next();
    abort.abort();
    expect(await messages.next()).toEqual({ done: true, value: undefined });
    expect(ends).toEqual([undefined]);
  });

  it("ends its sources if nobody reads it", async () => {
    const ends: string[] = [];
    const abort = new AbortController();
    const inner = mapStream(count(), { end: () => void ends.push("inner") });
    const outer = mapStream(untilAborted(inner, abort.signal), { end: () => void ends.push("outer") });
    endOnAbort(outer, abort.signal);
    abort.abort();
    expect(ends).toEqual(["outer", "inner"]);
  });

  it("ends once with its source's error", async () => {
    const ends: unknown[] = [];
    const failure = new Error("a test");
    const messages = mapStream(
      (async function* () {
        yield* count();
        throw failure;
      })(),
      { end: (thrown) => void ends.push(thrown) },
    );
    await expect(Array.fromAsync(messages)).rejects.toThrow(failure);
    await messages.return(undefined);
    expect(ends).toEqual([failure]);
  });
});
