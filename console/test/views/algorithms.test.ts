import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { AlgorithmInfoSchema } from "#gen/pqc/algorithm_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { maxMs, maxRuns, measureTimes } from "../../page/views/algorithms/measure.ts";
import { type Choice, chooseRows, toRows } from "../../page/views/algorithms/rows.ts";
import { serve } from "../steps/fake-caller.ts";

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
    const signatures = ["Ed25519", "ECDSA P-256", "RSA-2048", "RSA-3072", "ML-DSA-65"];
    expect(choose({ kind: "Signature" })).toEqual(signatures);
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

describe("a measurement", () => {
  /** Measures on a server whose calls take a given number of milliseconds on a fake clock. */
  async function measure(name: string, durations: readonly number[]) {
    let at = 0;
    let calls = 0;
    const take = <T>(answer: T): T => {
      at += durations[calls % durations.length] ?? 0;
      calls += 1;
      return answer;
    };
    const caller = serve(PqcService, {
      signData: () => take({ signature: Uint8Array.of(1), publicKey: Uint8Array.of(2) }),
      verifySignature: () => take({ valid: true }),
      exchangeKeys: () => take({ publicKey: Uint8Array.of(2) }),
    });
    const row = rows.find((candidate) => candidate.name === name);
    if (row === undefined) throw new Error(`row ${name} does not exist`);
    return { times: await measureTimes(row, caller, () => at), calls };
  }

  it("takes the fastest of five calls, with and without a new key pair", async () => {
    const { times, calls } = await measure("ML-KEM-768", [9, 4, 4, 4, 200, 2, 7, 8, 7, 7]);
    expect([times, calls]).toEqual([{ makeMs: 4, useMs: 2 }, 2 * maxRuns]);
  });

  it("calls a slow algorithm once", async () => {
    const { times, calls } = await measure("ML-DSA-65", [maxMs]);
    expect([times, calls]).toEqual([{ makeMs: maxMs, useMs: maxMs }, 2]);
  });
});
