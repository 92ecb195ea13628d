import { describe, expect, it } from "vitest";
import { findCost } from "../../src/crypto/costs.ts";

describe("the cost of an operation", () => {
  it("grows with the message, but a long message does not make quick work slow", () => {
    const short = findCost("sign", "ML-DSA-65", { messageBytes: 32 });
    const long = findCost("sign", "ML-DSA-65", { messageBytes: 64 * 1024 * 1024 });
    expect(long.costMs).toBeGreaterThan(100 * short.costMs);
    expect([short.isSlow, long.isSlow]).toEqual([false, false]);
  });

  it.each([
    ["sign", "SLH-DSA-SHA2-128s", true],
    ["import", "SLH-DSA-SHAKE-256s", true],
    ["generate", "SLH-DSA-SHA2-192s", true],
    ["verify", "SLH-DSA-SHAKE-256s", false],
    ["generate", "SLH-DSA-SHA2-128f", false],
    ["sign", "ML-DSA-87", false],
    ["sign representative", "ML-DSA-87", false],
    ["decapsulate", "X-Wing", false],
  ] as const)("assigns %s with %s to the right lane", (operation, algorithm, isSlow) => {
    expect(findCost(operation, algorithm).isSlow).toBe(isSlow);
  });
});
