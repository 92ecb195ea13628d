import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { createMetrics } from "../../../src/server/metrics.ts";
import { drawDots, drawLine, roundUp } from "../../page/views/activity/line.ts";
import { readSnapshot } from "../../page/views/activity/metrics-text.ts";
import { compareSnapshots, countSince, estimateMs, findNewest } from "../../page/views/activity/rates.ts";

const { signData, verifySignature } = PqcService.method;
const sign = "pqc.PqcService/SignData";

/** The metrics of a server that signs so often, in 3 ms each, and refuses one verification. */
async function readServer(signatures: number, at: number) {
  const metrics = createMetrics();
  for (let i = 0; i < signatures; i += 1) {
    metrics.callStarted(signData);
    metrics.callEnded(signData, undefined, 3);
  }
  metrics.callStarted(verifySignature);
  const failure = { code: Code.InvalidArgument, reason: "FIELD_INVALID" } as const;
  metrics.callEnded(verifySignature, failure, 0.2);
  return { snapshot: readSnapshot((await metrics.expose()).text, at) };
}

describe("readSnapshot", () => {
  it("reads what the server exposes of its calls", async () => {
    const { snapshot } = await readServer(4, 0);
    expect(snapshot.methods.get(sign)).toEqual({ answered: 4, failed: 0, seconds: 0.012, measured: 4 });
    expect(snapshot.methods.get("pqc.PqcService/VerifySignature")).toMatchObject({ answered: 0, failed: 1 });
    expect(snapshot.durations.get(0.0025)).toBe(1);
    expect(snapshot.durations.get(0.005)).toBe(5);
    expect(snapshot.durations.get(Number.POSITIVE_INFINITY)).toBe(5);
  });

  it("finds nothing in other texts", () => {
    expect(readSnapshot("<html>", 0)).toEqual({ at: 0, methods: new Map(), durations: new Map() });
  });
});

describe("compareSnapshots", () => {
  it("tells rates and latencies of the interval alone", async () => {
    const before = (await readServer(4, 1000)).snapshot;
    const after = (await readServer(10, 3000)).snapshot;
    const rates = compareSnapshots(before, after);
    expect(rates).toMatchObject({ callsPerSecond: 3, failuresPerSecond: 0 });
    // Six calls between 2.5 and 5 ms: the third of them is in the middle of the bucket.
    expect(rates.medianMs).toBeCloseTo(3.75);
  });

  it("begins again with a server that was started again", async () => {
    const before = (await readServer(10, 0)).snapshot;
    const after = (await readServer(4, 2000)).snapshot;
    expect(countSince(before, after).get(sign)).toMatchObject({ answered: 4 });
  });

  it("has no latency where there was no call", async () => {
    const { snapshot } = await readServer(4, 0);
    expect(compareSnapshots(snapshot, { ...snapshot, at: 2000 })).toEqual({
      at: 2000,
      callsPerSecond: 0,
      failuresPerSecond: 0,
      medianMs: undefined,
      p95Ms: undefined,
    });
  });
});

describe("findNewest", () => {
  const at = (ms: number, callsPerSecond: number) => ({
    ...{ at: ms, callsPerSecond, failuresPerSecond: 0 },
    ...{ medianMs: undefined, p95Ms: undefined },
  });
  const isBusy = ({ callsPerSecond }: { callsPerSecond: number }): boolean => callsPerSecond > 0;

  it("finds the newest interval with calls, and its age", () => {
    const found = findNewest([at(2000, 9), at(4000, 25), at(6000, 0), at(8010, 0)], isBusy);
    expect(found).toEqual({ rates: at(4000, 25), seconds: 4 });
  });

  it("finds nothing before the first call", () => {
    expect(findNewest([at(2000, 0)], isBusy)).toBeUndefined();
    expect(findNewest([], isBusy)).toBeUndefined();
  });
});

describe("estimateMs", () => {
  it("stays at the last bound for what is above all", () => {
    const buckets = new Map([
      [0.1, 1],
      [Number.POSITIVE_INFINITY, 10],
    ]);
    expect(estimateMs(buckets, 0.95)).toBe(100);
  });
});

describe("the line of a chart", () => {
  it("ends at the right edge, and begins again after a gap", () => {
    expect(drawLine([0, undefined, 5, 10], 4, 10)).toBe("M0.0 156.0M400.0 80.0L600.0 4.0");
    expect(drawLine([10], 3, 10)).toBe("M600.0 4.0");
  });

  it("shows a point between two gaps as a dot, and no other point", () => {
    expect(drawDots([5, undefined, 5, 10], 4, 10)).toBe("M0.0 80.0h0");
    expect(drawDots([undefined, 10, undefined], 3, 10)).toBe("M300.0 4.0h0");
    expect(drawDots([5, 10], 3, 10)).toBe("");
  });

  it("has a scale that ends at a round number", () => {
    expect([0, 0.4, 1.2, 3, 7, 10, 34].map(roundUp)).toEqual([1, 1, 2, 5, 10, 10, 50]);
  });
});
