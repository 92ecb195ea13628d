import { describe, expect, it } from "vitest";
import { openContent } from "../../src/http/byte-ranges.ts";
import { refusal } from "../support/refusal.ts";

/** Opens content with request headers. */
function open(headers: Record<string, string>, { method = "GET", protocol = "rest", length = 1000 } = {}) {
  const responseHeader = new Headers();
  const requestHeader = new Headers(headers);
  const call = { protocolName: protocol, requestMethod: method, requestHeader, responseHeader };
  const part = openContent(call, { length, tag: '"abc"', cacheControl: "no-cache" });
  return { ...part, headers: Object.fromEntries(responseHeader) };
}

const whole = { from: 0, to: 1000 };

describe("openContent", () => {
  it.each<[string, number, number]>([
    ["bytes=0-0", 0, 1],
    ["bytes=0-499", 0, 500],
    ["bytes=500-", 500, 1000],
    ["bytes=999-", 999, 1000],
    ["bytes=-1", 999, 1000],
    ["bytes=-5000", 0, 1000],
    ["bytes=900-99999999999999999999999999", 900, 1000],
    [`bytes=-${"9".repeat(400)}`, 0, 1000],
    ["Bytes = 1-2 ", 1, 3],
  ])("returns the part %s", (range, from, to) => {
    expect(open({ range })).toEqual({
      from,
      to,
      headers: {
        "accept-ranges": "bytes",
        "cache-control": "no-cache",
        "content-length": String(to - from),
        "content-range": `bytes ${from}-${to - 1}/1000`,
        etag: '"abc"',
      },
    });
  });

  it.each([
    ...["", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=0x10-", "bytes=5-2", "bytes=--1", "bytes=+1-2"],
    ...["bytes=1-2-3", "items=0-1", "bytes=0-0,1-1", "bytes=0-,0-,0-"],
    `bytes=${Array.from({ length: 2000 }, (_, i) => `${i}-`).join(",")}`,
  ])("ignores %j", (range) => {
    const { headers, ...part } = open({ range });
    expect(part).toEqual(whole);
    expect(headers).not.toHaveProperty("content-range");
    expect(headers["content-length"]).toBe("1000");
  });

  it.each<[string, number]>([
    ["bytes=1000-", 1000],
    ["bytes=1000-2000", 1000],
    ["bytes=99999999999999999999-", 1000],
    [`bytes=${"9".repeat(400)}-`, 1000],
    ["bytes=-0", 1000],
    ["bytes=0-", 0],
    ["bytes=-1", 0],
  ])("refuses %s of %i bytes, and gives the length", async (range, length) => {
    const opening = (async () => open({ range }, { length }))();
    expect(await refusal(opening)).toEqual({ code: "OutOfRange", reason: "RANGE_NOT_SATISFIABLE" });
    const metadata = new Headers({ "content-range": `bytes */${length}` });
    await expect(opening).rejects.toMatchObject({ metadata });
  });

  it("applies a range only to the content that If-Range names", () => {
    const range = "bytes=1-2";
    expect(open({ range, "if-range": '"abc"' })).toMatchObject({ from: 1, to: 3 });
    for (const other of ['"abd"', 'W/"abc"', "Fri, 27 Nov 2026 20:00:00 GMT", ""])
      expect(open({ range, "if-range": other })).toMatchObject(whole);
  });

  it("has nothing to stream for a caller that has the content, whatever range it asks for", () => {
    for (const tags of ['"abc"', 'W/"abc"', '"x", "abc"', "*"])
      expect(open({ "if-none-match": tags, range: "bytes=5000-" })).toMatchObject({ from: 0, to: 0 });
    expect(open({ "if-none-match": '"abd"' })).toMatchObject(whole);
  });

  it("ignores ranges of HEAD, and of protocols without ranges", () => {
    expect(open({ range: "bytes=1-2" }, { method: "HEAD" })).toMatchObject(whole);
    expect(open({ range: "bytes=1-2" }, { protocol: "grpc" })).toEqual({ ...whole, headers: {} });
  });
});
