import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { formatAddress, parseAddress } from "../../../src/console/page/address.ts";
import { formatMinute, formatSecond, parseMinute } from "../../../src/console/page/time.ts";

describe("the address of a page", () => {
  it("is a path and what the page shows, there and back", () => {
    const hash = formatAddress("keys/audit", { key: "name/a b&c?d", empty: "" });
    const { path, query } = parseAddress(hash);
    expect([path, Object.fromEntries(query)]).toEqual(["keys/audit", { key: "name/a b&c?d" }]);
  });

  for (const [hash, path] of [
    ["", ""],
    ["#/", ""],
    ["#/sign", "sign"],
    ["#/keys/manage?key=key-1", "keys/manage"],
  ] as const)
    it(`has the path “${path}” in “${hash}”`, () => {
      expect(parseAddress(hash).path).toBe(path);
    });
});

describe("times", () => {
  const time = timestampFromDate(new Date("2026-11-23T13:58:50.120Z"));

  it("are shown in UTC", () => {
    expect([formatMinute(time), formatSecond(time)]).toEqual(["2026-11-23 13:58", "2026-11-23 13:58:50.120"]);
    expect(formatMinute(undefined)).toBe("–");
  });

  it("are read in UTC, or not at all", () => {
    expect(formatMinute(parseMinute("2026-11-23T13:58"))).toBe("2026-11-23 13:58");
    expect(parseMinute("")).toBeUndefined();
  });
});
