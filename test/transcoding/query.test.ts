import { describe, expect, it } from "vitest";
import { excerpt } from "../../src/errors/shorten.ts";
import { invalid, type Rule, received } from "./rules.ts";

const get = (query: string, rule: Rule = { get: "/v1" }) => received(rule, `GET /v1?${query}`);

describe("a query sets fields", () => {
  it.each<[query: string, request: object]>([
    // Names.
    ["", {}],
    ["&&name=a&&", { name: "a" }],
    ["display_name=a", { displayName: "a" }],
    ["renamed=a", { "other-name": "a" }],
    ["n%61me=a", { name: "a" }],
    ["nested%2Eid=a", { nested: { id: "a" } }],
    ["nested.child.child.id=a&nested.id=b", { nested: { id: "b", child: { child: { id: "a" } } } }],
    // Text.
    ["name", {}],
    ["nickname", { nickname: "" }],
    ["name=a%20b", { name: "a b" }],
    ["name=+%2B++%C3%A9+", { name: " +  é " }],
    ["name=a=b?c/d;e%26f%3Dg", { name: "a=b?c/d;e&f=g" }],
    ["name=null", { name: "null" }],
    ["name=a#b", { name: "a" }],
    // Booleans and numbers.
    ["boolValue=false&int32Value=0&color=0&bytesValue=", {}],
    ["int32Value=-2147483648&uint32Value=4294967295", { int32Value: -2147483648, uint32Value: 4294967295 }],
    ["int64Value=9007199254740993", { int64Value: "9007199254740993" }],
    ["uint64Value=18446744073709551615", { uint64Value: "18446744073709551615" }],
    ["doubleValue=-1e-7&floatValue=0.5", { doubleValue: -1e-7, floatValue: 0.5 }],
    ["doubleValue=-Infinity", { doubleValue: "-Infinity" }],
    // Bytes: standard and URL-safe, padded or not, and with an unencoded plus sign.
    ["bytesValue=+/8=", { bytesValue: "+/8=" }],
    ["bytesValue=-_8", { bytesValue: "+/8=" }],
    // Enums.
    ["color=RED", { color: "RED" }],
    ["color=-1", { color: "ULTRAVIOLET" }],
    // Repeated fields.
    ["tags=a&name=x&tags=b&tags=a", { tags: ["a", "b", "a"], name: "x" }],
    ["tags=", { tags: [""] }],
    ["longs=9007199254740993&doubles=NaN", { longs: ["9007199254740993"], doubles: ["NaN"] }],
    ["blobs=AQI&blobs=Aw==", { blobs: ["AQI=", "Aw=="] }],
    ["colors=RED&colors=2", { colors: ["RED", "GREEN"] }],
    ["nested.tags=a&nested.tags=b", { nested: { tags: ["a", "b"] } }],
    ["times=2026-11-21T08:00:00Z", { times: ["2026-11-21T08:00:00Z"] }],
    // Well-known types, in their JSON form.
    ["timestamp=2026-11-21T08:00:00.5Z", { timestamp: "2026-11-21T08:00:00.500Z" }],
    ["duration=-1.5s", { duration: "-1.500s" }],
    ["mask=name,nested.longName", { mask: "name,nested.longName" }],
    ["boolWrapper=false&int32Wrapper=0", { boolWrapper: false, int32Wrapper: 0 }],
    ["int64Wrapper=9007199254740993", { int64Wrapper: "9007199254740993" }],
    ["bytesWrapper=AQI", { bytesWrapper: "AQI=" }],
    ["value=9007199254740993", { value: 9007199254740992 }],
    // Oneofs.
    ["text=", { text: "" }],
    ["part.id=a&part.count=1", { part: { id: "a", count: "1" } }],
    ["wrapped=a", { wrapped: "a" }],
  ])("?%s", async (query, request) => {
    expect(await get(query)).toEqual(request);
  });

  it("accepts names a hundred fields deep", async () => {
    const names = `nested.${"child.".repeat(50)}id`;
    expect(await get(`${names}=a`)).toHaveProperty(names, "a");
  });
});

describe("an invalid query value is refused and its field named", () => {
  const refused: Readonly<Record<string, readonly string[]>> = {
    boolValue: ["", "1", "True", "yes", "%20true"],
    int32Value: ["", "a", "1.5", "1e3", "0x10", "+1", "1%20", "1,2", "null", "2147483648"],
    uint32Value: ["-1"],
    int64Value: ["9223372036854775808", "1e3", "%D9%A1"],
    floatValue: ["1e39"],
    doubleValue: ["", "1e400", "inf", "nan", "0x1", "1_000", "."],
    bytesValue: ["A", "A$==", "AQI%3DAQI%3D", "AQ%3DI", "AQI%0A", "%3D%3D%3D%3D"],
    color: ["", "red", "BLUE", "1.0", "99999999999", "__proto__"],
    timestamp: ["", "yesterday", "2026-11-21", "2026-11-21T08:00:00", "2026-11-21T08:00:00+01:00"],
    times: ["2026-11-21T08:00:00Z&times=2026-13-21T08:00:00Z", "2026-02-30T08:00:00Z"],
    duration: ["", "5", "5m", "5s!", "999999999999s", "1.1234567890s"],
    mask: ["display_name"],
    int32Wrapper: ["a"],
    struct: ["[]", "{", "a", '{"a":1,"a":2}'],
    value: ["a", `${"[".repeat(10_000)}${"]".repeat(10_000)}`],
    "nested.child.count": ["x"],
  };
  for (const [field, texts] of Object.entries(refused)) {
    it.each(texts)(`?${field}=%s`, async (text) => {
      expect(await get(`${field}=${text}`)).toEqual(invalid("FIELD_INVALID", field));
    });
  }

  it.each([
    ["boolValue", "boolValue"],
    ["bool_value=1", "boolValue"],
  ])("?%s", async (query, field) => {
    expect(await get(query)).toEqual(invalid("FIELD_INVALID", field));
  });
});

describe("an unknown query name is refused and quoted", () => {
  const refused: Readonly<Record<string, readonly string[]>> = {
    "not a field": ["bogus", "Name", "DisplayName", "", "%20name", "name%00", "alt", "$typeName", "choice"],
    "not a path of fields": ["name.x", "name.", ".name", "nested..id", "nested.bogus", "choice.text"],
    "not a value": ["nested", "nested.child", "nesteds", "labels", "nested.labels", "any", "empty", "raw"],
    "a part of a value": ["nesteds.id", "nesteds[0].id", "tags.0", "labels.a", "stringWrapper.value"],
    "a name from Object.prototype": ["__proto__", "constructor.prototype", "nested.__proto__"],
    "too deep": [`nested.${"child.".repeat(300)}id`],
  };
  for (const [what, names] of Object.entries(refused)) {
    it.each(names)(`${what}: ?%s=1`, async (name) => {
      expect(await get(`${name}=1`)).toEqual(invalid("PARAMETER_UNKNOWN", excerpt(decodeURIComponent(name))));
    });
  }

  it("by a call without fields left for a query", async () => {
    const post = (query: string, body: string) =>
      received({ post: "/v1", body: "*" }, `POST /v1?${query}`, { body });
    expect(await post("name=a", "{}")).toEqual(invalid("PARAMETER_UNKNOWN", "name"));
    expect(await post("&", "{}")).toEqual({});
  });
});

describe("a duplicate parameter is refused", () => {
  it.each([
    ["name=a&name=a", "name"],
    ["displayName=a&display_name=a", "displayName"],
    ["other-name=a&renamed=b", "other-name"],
    ["timestamp=2026-11-21T08:00:00Z&timestamp=2026-11-21T08:00:00Z", "timestamp"],
  ])("?%s", async (query, field) => {
    expect(await get(query)).toEqual(invalid("PARAMETER_DUPLICATE", field));
  });
});

describe("a query that is not percent-encoded UTF-8 is refused", () => {
  it.each(["name=%", "name=%2", "name=%zz", "name=%FF", "%FF=a", "name=%C0%AF", "name=%ED%A0%80"])(
    "?%j",
    async (query) => {
      expect(await get(query)).toEqual(invalid("TARGET_INVALID"));
    },
  );
});
