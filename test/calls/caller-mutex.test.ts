import { expect, it } from "vitest";
import { createCallerMutex } from "../../src/calls/caller-mutex.ts";

const { signal } = new AbortController();

it("runs a caller's work one at a time, even after a failure, without delaying other callers", async () => {
  const runExclusively = createCallerMutex();
  const first = Promise.withResolvers<string>();
  const begun: string[] = [];
  const take = (caller: string, name: string, work: () => Promise<string>) =>
    runExclusively(caller, signal, () => {
      begun.push(name);
      return work();
    });
  const one = take("ada", "one", () => first.promise);
  const two = take("ada", "two", async () => "done");
  expect(await take("bob", "other", async () => "done")).toBe("done");
  expect(begun).toEqual(["one", "other"]);
  first.reject(new Error("the store is down"));
  await expect(one).rejects.toThrow("down");
  expect(await two).toBe("done");
  expect(begun).toEqual(["one", "other", "two"]);
});

it("skips a call that has ended", async () => {
  const runExclusively = createCallerMutex();
  const first = Promise.withResolvers<void>();
  const one = runExclusively("ada", signal, () => first.promise);
  const caller = new AbortController();
  const two = runExclusively("ada", caller.signal, async () => "never");
  caller.abort(new Error("gone"));
  first.resolve();
  await one;
  await expect(two).rejects.toThrow("gone");
});
