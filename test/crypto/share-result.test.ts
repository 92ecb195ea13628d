import { describe, expect, it, vi } from "vitest";
import { createSignCheck, healthMs } from "../../src/crypto/can-sign.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { shareResult } from "../../src/crypto/share-result.ts";

/** A result that is kept for 5 seconds, on a manual clock. */
function createKept(compute: (count: number) => Promise<string>) {
  let nowMs = 0;
  let count = 0;
  const ask = shareResult(
    5000,
    () => {
      count += 1;
      return compute(count);
    },
    () => nowMs,
  );
  const setTime = (ms: number): void => {
    nowMs = ms;
  };
  return { ask, setTime };
}

describe("shareResult", () => {
  it("computes once for all concurrent callers", async () => {
    const gate = Promise.withResolvers<void>();
    const { ask } = createKept(async (count) => {
      await gate.promise;
      return `result ${count}`;
    });
    const asked = Array.from({ length: 1000 }, ask);
    gate.resolve();
    expect(new Set(await Promise.all(asked))).toEqual(new Set(["result 1"]));
  });

  it("returns the same result for some time, then computes again", async () => {
    const { ask, setTime } = createKept(async (count) => `result ${count}`);
    expect(await ask()).toBe("result 1");
    setTime(4999);
    expect(await ask()).toBe("result 1");
    setTime(5000);
    expect([await ask(), await ask()]).toEqual(["result 2", "result 2"]);
  });

  it("measures the time from the end of the computation", async () => {
    const gate = Promise.withResolvers<string>();
    const { ask, setTime } = createKept(() => gate.promise);
    const first = ask();
    setTime(60_000);
    expect(ask()).toBe(first);
    gate.resolve("late");
    await first;
    setTime(64_999);
    expect(ask()).toBe(first);
  });

  it("also shares failures", async () => {
    const { ask, setTime } = createKept((count) => Promise.reject(new Error(`failure ${count}`)));
    await expect(ask()).rejects.toThrow("failure 1");
    await expect(ask()).rejects.toThrow("failure 1");
    setTime(5000);
    await expect(ask()).rejects.toThrow("failure 2");
  });
});

describe("the algorithm health check", () => {
  it("names the algorithms that work, and generates one key pair for each, however many callers check", async () => {
    const provider = await createCryptoProvider("openssl");
    const generated = vi.spyOn(provider.system, "generateKeyPair");
    const check = createSignCheck(provider, ["ML-DSA-44", "ECDSA-P256"]);
    const answers = await Promise.all(Array.from({ length: 300 }, check));
    expect(new Set(answers)).toEqual(new Set([new Set(["ML-DSA-44", "ECDSA-P256"])]));
    expect(generated).toHaveBeenCalledTimes(2);
    await provider.close();
  });

  it("reports a failure for some seconds", async () => {
    const provider = await createCryptoProvider("openssl");
    await provider.close();
    expect(await createSignCheck(provider, ["ML-DSA-44"])()).toEqual(new Set());
    expect(healthMs).toBeGreaterThanOrEqual(2000);
  });
});
