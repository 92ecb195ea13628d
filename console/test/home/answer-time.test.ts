import { describe, expect, it } from "vitest";
import { findAnswerTime } from "../../page/answer-time.ts";

/** A request, as browsers tell of it; times in milliseconds. */
function createEntry(path: string, startTime: number, requestStart: number, responseStart: number) {
  const name = `http://127.0.0.1:8080/${path}`;
  const entry = { name, startTime, entryType: "resource", duration: 0, toJSON: () => ({}) };
  return { ...entry, requestStart, responseStart };
}

const rpc = "pqc.PqcService/SignData";

describe("the time of an answer", () => {
  it("does not contain the wait behind other loads of the page", () => {
    const loads = createEntry("style.css", 100, 101, 103);
    expect(findAnswerTime([loads, createEntry(rpc, 100, 300, 312)], rpc, 100)).toBe(12);
  });

  it("is that of the call, and not of an earlier one", () => {
    const calls = [createEntry(rpc, 20, 30, 90), createEntry(rpc, 200, 201, 205)];
    expect(findAnswerTime(calls, rpc, 100)).toBe(4);
  });

  it("is unknown where the browser does not tell", () => {
    expect(findAnswerTime([createEntry(rpc, 100, 0, 0)], rpc, 100)).toBeUndefined();
    expect(findAnswerTime([], rpc, 100)).toBeUndefined();
  });
});
