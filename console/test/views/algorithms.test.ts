import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { AlgorithmInfoSchema } from "#gen/pqc/algorithm_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import {
  maxMs,
  maxRuns,
  measureEmptyCall,
  measureTimes,
  pickMedian,
  warmUp,
} from "../../page/views/algorithms/measure.ts";
import { type Choice, chooseRows, toRows } from "../../page/views/algorithms/rows.ts";
import { createLogScale } from "../../page/views/algorithms/scale.ts";
import { createFakeCaller } from "../steps/fake-caller.ts";

const supported = [
  { name: "ML-DSA-65", category: "SIGNATURE", nistLevel: 3, publicKeyBytes: 1952, signatureBytes: 3309 },
  { name: "ML-KEM-768", category: "KEM", nistLevel: 3, publicKeyBytes: 1184, ciphertextBytes: 1088 },
].map((init) => create(AlgorithmInfoSchema, init));
const rows = toRows(supported);
const all: Choice = { kind: "", family: "", category: "", sort: "resultBytes", isDescending: false };
const choose = (choice: Partial<Choice>, times = new Map()) =>
  chooseRows(rows, { ...all, ...choice }, times).map(({ name }) => name);

describe("the explorer's rows", () => {
  it("are sorted by any column, in both directions", () => {
    expect(choose({ kind: "Signature" })).toEqual([
      "Ed25519",
      "ECDSA P-256",
      "RSA-2048",
      "RSA-3072",
      "ML-DSA-65",
    ]);
    expect(choose({ kind: "Key exchange", isDescending: true })).toEqual(["ML-KEM-768", "X25519"]);
    expect(choose({ family: "classical", sort: "name" }).at(0)).toBe("ECDSA P-256");
  });

  it("come last without a measured time, in both directions", () => {
    const times = new Map([["ML-KEM-768", { makeMs: 1, useMs: 1 }]]);
    for (const isDescending of [true, false])
      expect(choose({ sort: "makeMs", isDescending }, times)[0]).toBe("ML-KEM-768");
  });

  it("are filtered by security category, which breakable algorithms do not have", () => {
    expect(choose({ category: "3", sort: "name" })).toEqual(["ML-DSA-65", "ML-KEM-768"]);
    expect(choose({ category: "none: breakable" })).toHaveLength(5);
  });
});

describe("a logarithmic scale", () => {
  it("gives each factor of ten the same length, and is clamped at its ends", () => {
    const { ticks, place } = createLogScale(10, 4);
    expect(ticks).toEqual([10, 100, 1000, 10_000, 100_000]);
    expect([1, 10, 1000, 1e6].map(place)).toEqual([0, 0, 0.5, 1]);
  });
});

describe("a measurement", () => {
  /** A server whose calls take a given number of milliseconds on a fake clock. */
  function createTimed(durations: readonly number[]) {
    let at = 0;
    let calls = 0;
    const take = <T>(answer: T): T => {
      at += durations[calls % durations.length] ?? 0;
      calls += 1;
      return answer;
    };
    const caller = createFakeCaller(({ service }) => {
      service(PqcService, {
        signData: () => take({ signature: Uint8Array.of(1), publicKey: Uint8Array.of(2) }),
        verifySignature: () => take({ valid: true }),
        exchangeKeys: () => take({ publicKey: Uint8Array.of(2) }),
      });
      service(TokenService, { hello: () => take({}) });
    });
    const { signal } = new AbortController();
    return { measuring: { caller, signal, now: () => at }, countCalls: () => calls };
  }
  const rowOf = (name: string) => {
    const row = rows.find((candidate) => candidate.name === name);
    if (row === undefined) throw new Error(`row ${name} does not exist`);
    return row;
  };

  it("is the median of a bounded number of calls", async () => {
    const { measuring, countCalls } = createTimed([1, 9, 2, 8, 3]);
    expect(await measureEmptyCall(measuring)).toBe(3);
    expect(countCalls()).toBe(maxRuns);
  });

  it("is warmed up by calls with and without cryptography", async () => {
    const { measuring, countCalls } = createTimed([1]);
    await warmUp(measuring);
    expect(countCalls()).toBe(2 * maxRuns);
  });

  it("has a median that one slow call does not affect", () => {
    expect([pickMedian([5, 200, 4]), pickMedian([7]), pickMedian([])]).toEqual([5, 7, 0]);
  });

  it("calls a slow algorithm once", async () => {
    const { measuring, countCalls } = createTimed([maxMs]);
    expect(await measureTimes(rowOf("ML-DSA-65"), measuring)).toEqual({ makeMs: maxMs, useMs: maxMs });
    expect(countCalls()).toBe(2);
  });

  it("distinguishes key exchange with and without a new key pair", async () => {
    const { measuring, countCalls } = createTimed([1, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2]);
    expect(await measureTimes(rowOf("ML-KEM-768"), measuring)).toEqual({ makeMs: 4, useMs: 2 });
    expect(countCalls()).toBe(1 + 2 * maxRuns);
  });
});
