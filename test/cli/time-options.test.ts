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
    ["12h", 43_200],
    ["30d", 2_592_000],
    ["12w", 7_257_600],
  ])("%s has %d seconds", (text, seconds) => {
    expect(readSeconds(optionsWith(text), "t")).toBe(seconds);
  });

  it.each(["", "5", "5m", "-1d", "1.5d", "d", "1d ", "99999999999s", "9999999999w"])(
    'is not "%s", and the error names the units',
    (text) => expect(() => readSeconds(optionsWith(text), "t")).toThrow("s, h, d and w"),
  );

  it("may be as short and as long as its limits, but no shorter and no longer", () => {
    const read = (text: string) => readSeconds(optionsWith(text), "t", { min: 1, max: 120 });
    expect([read("1d"), read("120d")]).toEqual([86_400, 10_368_000]);
    expect(() => read("86399s")).toThrow("must be at least 1d");
    expect(() => read("10368001s")).toThrow("may be at most 120d");
  });
});

describe("a time", () => {
  it.each([
    ["2027-01-01T00:00:00Z", 1, "2027-01-01T00:00:00.000Z"],
    ["2027-01-01T02:00:00.5+02:00", 1, "2027-01-01T00:00:00.500Z"],
    ["2028-02-29", 1, "2028-02-29T00:00:00.000Z"],
    ["1d", 1, "2026-11-24T10:00:00.000Z"],
    ["1h", -1, "2026-11-23T09:00:00.000Z"],
  ] as const)("%s is, in the direction %d, %s", (text, direction, expected) => {
    const found = readTime(optionsWith(text), "t", direction, now);
    expect(found && timestampDate(found).toISOString()).toBe(expected);
  });

  const days = ["", "tomorrow", "2027", "2027-02-29", "2027-13-01", "2027-02-31T00:00:00Z"];
  const times = ["T24:00:00Z", "T23:60:00Z", "T23:59:60Z", "T00:00:00+24:00", "T00:00:00+01:60", "T00:00:00"];
  it.each([...days, ...times.map((time) => `2027-01-01${time}`)])('is not "%s"', (text) => {
    expect(() => readTime(optionsWith(text), "t", 1, now)).toThrow("--t");
  });
});
