import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { formatAddress, formatStepAddress, parseAddress, toSlug } from "../../page/address.ts";
import { formatMinute, formatSecond, parseMinute } from "../../page/time.ts";

describe("a page's address", () => {
  it("contains path and parameters, and can be parsed again", () => {
    const hash = formatAddress("keys/audit", { key: "name/a b&c?d", empty: "" });
    const { path, query } = parseAddress(hash);
    expect([path, Object.fromEntries(query)]).toEqual(["keys/audit", { key: "name/a b&c?d" }]);
  });

  it.each([
    ["", ""],
    ["#/", ""],
    ["#/sign", "sign"],
    ["#/key-exchange/", "key-exchange"],
    ["#/keys/manage/?key=key-1", "keys/manage"],
  ])("“%s” has the path “%s”", (hash, path) => {
    expect(parseAddress(hash).path).toBe(path);
  });
});

const storiesDir = join(import.meta.dirname, "../../page/stories");

/** The slugs of a story's steps, from its source. */
function readSlugs(story: string): string[] {
  const sources = globSync(`${story}/*.tsx`, { cwd: storiesDir }).map((path) =>
    readFileSync(join(storiesDir, path), "utf8"),
  );
  const titles = sources.flatMap((source) => [...source.matchAll(/\bstep\(\{\s*title: "([^"]+)"/g)]);
  return titles.map(([, title = ""]) => toSlug(title));
}

describe("a step's address", () => {
  it("contains page and step, and can be parsed again", () => {
    const hash = formatStepAddress("keys", toSlug("Rotate it"));
    expect(hash).toBe("#/keys/steps/rotate");
    expect(parseAddress(hash)).toMatchObject({ path: "keys", step: "rotate" });
    expect(parseAddress("#/keys/manage").step).toBeUndefined();
  });

  it.each([
    ["Verify it on both sides", "verify-on-both-sides"],
    ["Get the gateway's public keys", "get-gateway-s-public-keys"],
    ["“?&#/ <b>", "b"],
  ])("for “%s” is “%s”", (title, slug) => {
    expect(toSlug(title)).toBe(slug);
  });

  it.each(globSync("*/", { cwd: storiesDir }))("is unique within the story %s", (story) => {
    const slugs = readSlugs(story);
    expect(slugs.length).toBeGreaterThan(1);
    expect(slugs).not.toContain("");
    expect(new Set(slugs).size).toBe(slugs.length);
  });
});

describe("times", () => {
  const time = timestampFromDate(new Date("2026-11-23T13:58:50.120Z"));

  it("are shown in UTC", () => {
    expect([formatMinute(time), formatSecond(time)]).toEqual(["2026-11-23 13:58", "2026-11-23 13:58:50.120"]);
    expect(formatMinute(undefined)).toBe("–");
  });

  it("are parsed as UTC, or not at all", () => {
    expect(formatMinute(parseMinute("2026-11-23T13:58"))).toBe("2026-11-23 13:58");
    expect(parseMinute("")).toBeUndefined();
  });
});
