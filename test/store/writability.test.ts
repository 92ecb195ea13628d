import { renameSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { unobserved } from "../../src/database/background.ts";
import type { Reserve } from "../../src/database/reserve.ts";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { createWritability } from "../../src/store/writability.ts";
import { makeSqlitePlace } from "../support/on-both.ts";
import { watchThreads } from "../support/worker-threads.ts";

const second = 1000;
beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

/** A store that a test can break, and what its listener receives. */
function watchStore(reserve?: Reserve) {
  let nowMs = 0;
  let probes = 0;
  let fault: Error | undefined;
  const heard: (string | undefined)[] = [];
  const writability = createWritability({ reserve, background: unobserved, nowMs: () => nowMs });
  const probe = async (): Promise<void> => {
    probes += 1;
    if (fault !== undefined) throw fault;
    writability.wrote();
  };
  const stop = writability.watch((problem) => heard.push(problem?.reason), probe);
  return {
    ...writability,
    heard,
    stop,
    countProbes: () => probes,
    break: (error?: Error) => {
      fault = error;
    },
    async pass(ms: number) {
      for (let passed = 0; passed < ms; passed += second) {
        nowMs += second;
        await vi.advanceTimersByTimeAsync(second);
      }
    },
  };
}

const caused = (code: string) => Object.assign(new Error("a cause"), { code });
const unavailable = (code: string) => new StoreFailureError("UNAVAILABLE", caused(code));

describe("a store's writability", () => {
  it.each([
    [new StoreFailureError("FULL", new Error()), "disk full"],
    [new StoreFailureError("CORRUPT", new Error()), "it is damaged"],
    [unavailable("SQLITE_5"), "another program holds the lock for writing"],
    [unavailable("55P03"), "another program holds the lock for writing"],
    [unavailable("SQLITE_8"), "it is read-only"],
    [unavailable("25006"), "it is read-only"],
    [unavailable("SQLITE_10"), "its disk reports an error"],
    [unavailable("SQLITE_14"), "its file was moved or removed, or cannot be opened"],
    [unavailable("ECONNREFUSED"), "it cannot be reached"],
    [new Error("a refusal"), "it rejects writes"],
  ])("ends when a write and the following probe fail (%#)", async (error, reason) => {
    const store = watchStore();
    store.break(error);
    store.failed();
    await store.pass(second);
    expect(store.heard).toEqual([reason]);
  });

  it("continues if a write fails but the following probe succeeds", async () => {
    const store = watchStore();
    store.failed();
    await store.pass(second);
    expect(store.heard).toEqual([]);
    expect(store.countProbes()).toBe(1);
  });

  it.each([
    [
      "within a second after the cause has passed",
      (store: ReturnType<typeof watchStore>) => store.pass(second),
    ],
    ["with the first successful write", async (store: ReturnType<typeof watchStore>) => store.wrote()],
  ])("returns %s", async (_when, act) => {
    const store = watchStore();
    store.break(caused("SQLITE_8"));
    store.failed();
    await store.pass(30 * second);
    store.break();
    await act(store);
    expect(store.heard).toEqual(["it rejects writes", undefined]);
  });

  it("is checked within ten seconds if nothing is written", async () => {
    const store = watchStore();
    store.break(unavailable("25006"));
    await store.pass(9 * second);
    expect(store.countProbes()).toBe(0);
    await store.pass(second);
    expect(store.heard).toEqual(["it is read-only"]);
  });

  it("needs no probe while there are other writes, or without listeners", async () => {
    const store = watchStore();
    for (let i = 0; i < 60; i += 1) {
      store.wrote();
      await store.pass(second);
    }
    store.stop();
    store.failed();
    await store.pass(60 * second);
    expect(store.countProbes()).toBe(0);
  });

  it("does not count while the reserve is in use, whatever fits into it", async () => {
    let isReleased = true;
    const reserve: Reserve = {
      get isReleased() {
        return isReleased;
      },
      isWhole: () => !isReleased,
      release: async () => {},
      restore: async () => {},
    };
    const store = watchStore(reserve);
    await store.pass(second);
    store.wrote();
    expect(store.heard).toEqual(["disk full"]);
    isReleased = false;
    await store.pass(second);
    expect(store.heard).toEqual(["disk full", undefined]);
  });

  it("is probed after a failed read, which finds that the file was moved away", async () => {
    const place = await makeSqlitePlace();
    const readers = watchThreads("sqlite reader");
    const store = await place.open();
    const problem = new Promise((resolve) => store.watchWrites((found) => resolve(found?.reason)));
    const path = join(place.directory, "qsp.db");
    renameSync(path, `${path}.away`);
    await readers.endAll();
    const read = store.reader.selectFrom("list_counts").selectAll().execute();
    await expect(read).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(await problem).toBe("its file was moved or removed, or cannot be opened");
    renameSync(`${path}.away`, path);
  });
});
