import { describe, expect, it } from "vitest";
import { decodeBase64url, encodeBase64url } from "../../src/crypto/base64url.ts";
import { parseJsonObject } from "../../src/crypto/strict-json.ts";

const parse = (text: string) => parseJsonObject(new TextEncoder().encode(text));

describe("parseJsonObject", () => {
  it.each([
    '{"a":1,"b":{"a":1}}',
    '{"a":["a","a",{"a":1}],"b":"a"}',
    '{"a":"\\\\",":":"{\\"a\\":1,\\"a\\":1}"}',
    ' { "a" : null , "b" : [ ] } ',
    "{}",
  ])("parses %s as JSON.parse does", (text) => {
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  it.each([
    ["a duplicate name", '{"a":1,"a":1}'],
    ["a duplicate name with others between", '{"a":1,"b":{"c":[]},"a":1}'],
    ["a duplicate name with quotes", '{"\\"":1,"\\"":1}'],
    ["an array", "[]"],
    ["null", "null"],
    ["nothing", ""],
    ["text after the object", "{} {}"],
    ["a byte order mark", "\ufeff{}"],
  ])("rejects %s", (_name, text) => {
    expect(parse(text)).toBeUndefined();
  });

  it("rejects bytes that are not UTF-8", () => {
    expect(parseJsonObject(Uint8Array.of(0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d))).toBeUndefined();
  });

  it("stops at the token limit, and counts no tokens inside strings", () => {
    const count = (text: string, maxTokens: number) =>
      parseJsonObject(new TextEncoder().encode(text), maxTokens);
    // Six tokens: {, "a", :, [, ] and }.
    expect(count('{"a":[1]}', 6)).toEqual({ a: [1] });
    expect(count('{"a":[1]}', 5)).toBeUndefined();
    expect(count('{"a":"\\"[[[{{{,,,:::"}', 5)).toEqual({ a: '"[[[{{{,,,:::' });
  });

  it("keeps a member named __proto__ as a member", () => {
    const parsed = parse('{"__proto__":{"a":1}}');
    expect(Object.keys(parsed ?? {})).toEqual(["__proto__"]);
    expect(parsed?.a).toBeUndefined();
  });
});

describe("base64url", () => {
  it.each([0, 1, 2, 3, 4, 255])("decodes the %i bytes that it encoded, without padding", (length) => {
    const bytes = crypto.getRandomValues(new Uint8Array(length));
    const text = encodeBase64url(bytes);
    expect(text).toMatch(/^[A-Za-z0-9_-]*$/);
    expect(decodeBase64url(text)).toEqual(bytes);
  });

  it.each(["=", "AA==", "AA=", "A", "AB", "AAB", " AA", "AA\n", "+_", "/_", "Ä", "AA.AA"])(
    "rejects %j",
    (text) => {
      expect(decodeBase64url(text)).toBeUndefined();
    },
  );
});
