import { timestampDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { type ParsedOptions, readVerbLine } from "../../src/cli/command-line/options.ts";
import { readSeconds, readTime } from "../../src/cli/command-line/time-options.ts";

const now = new Date("2026-11-23T10:00:00.000Z");

function optionsWith(text: string): ParsedOptions {
  const taker = { name: "try", operands: [], options: { t: { value: "T", meaning: "" } }, isLocal: true };
  return readVerbLine(taker, [`--t=${text}`]).options;
}

describe("a duration", () => {
  it.each([
    ["0s", 0],
    ["86400s", 86_400],
    ["12h", 43_200],
    ["30d", 2_592_000],
    ["12w", 7_257_600],
  ])("%s has %d seconds", (text, seconds) => {
    expect(readSeconds(optionsWith(text), "t")).toBe(seconds);
  });

  it.each(["", "5", "5m", "1y", "-1d", "1.5d", "d", "1d ", "99999999999s", "9999999999w"])(
    'is not "%s", and the error names the units',
    (text) => {
      expect(() => readSeconds(optionsWith(text), "t")).toThrow("s, h, d and w");
    },
  );

  it("may be as short and as long as its limits, but no shorter and no longer", () => {
    const range = { min: 1, max: 120 };
    expect(readSeconds(optionsWith("1d"), "t", range)).toBe(86_400);
    expect(readSeconds(optionsWith("120d"), "t", range)).toBe(10_368_000);
    expect(() => readSeconds(optionsWith("86399s"), "t", range)).toThrow("must be at least 1d");
    expect(() => readSeconds(optionsWith("10368001s"), "t", range)).toThrow("may be at most 120d");
  });
});

describe("a time", () => {
  it.each([
    ["2027-01-01T00:00:00Z", "2027-01-01T00:00:00.000Z"],
    ["2027-01-01T02:00:00.5+02:00", "2027-01-01T00:00:00.500Z"],
    ["2028-02-29", "2028-02-29T00:00:00.000Z"],
    ["1d", "2026-11-24T10:00:00.000Z"],
  ])("%s is %s", (text, expected) => {
    const found = readTime(optionsWith(text), "t", 1, now);
    expect(found && timestampDate(found).toISOString()).toBe(expected);
  });

  it("lies in the past for a backward duration", () => {
    const found = readTime(optionsWith("1h"), "t", -1, now);
    expect(found && timestampDate(found).toISOString()).toBe("2026-11-23T09:00:00.000Z");
  });

  it.each([
    "",
    "tomorrow",
    "2027",
    "2027-02-29",
    "2027-02-31T00:00:00Z",
    "2027-01-01T24:00:00Z",
    "2027-01-01T23:60:00Z",
    "2027-01-01T23:59:60Z",
    "2027-01-01T00:00:00+24:00",
    "2027-01-01T00:00:00+01:60",
    "2027-01-01T00:00:00",
    "2027-13-01",
  ])('is not "%s"', (text) => {
    expect(() => readTime(optionsWith(text), "t", 1, now)).toThrow("--t");
  });
});
