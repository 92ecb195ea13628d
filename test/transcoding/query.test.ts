import { describe, expect, it } from "vitest";
import { excerpt } from "../../src/errors/shorten.ts";
import { invalid, type Rule, received } from "./rules.ts";

const get = (query: string, rule: Rule = { get: "/v1" }) => received(rule, `GET /v1?${query}`);

describe("a query sets fields", () => {
  const rows: [query: string, request: object][] = [
    // Names.
    ["", {}],
    ["&", {}],
    ["&&name=a&&", { name: "a" }],
    ["name=a", { name: "a" }],
    ["displayName=a", { displayName: "a" }],
    ["display_name=a", { displayName: "a" }],
    ["other-name=a", { "other-name": "a" }],
    ["renamed=a", { "other-name": "a" }],
    ["n%61me=a", { name: "a" }],
    ["nested.id=a", { nested: { id: "a" } }],
    ["nested%2Eid=a", { nested: { id: "a" } }],
    ["nested.longName=a&nested.id=b", { nested: { longName: "a", id: "b" } }],
    ["nested.long_name=a", { nested: { longName: "a" } }],
    ["nested.child.child.id=a&nested.id=b", { nested: { id: "b", child: { child: { id: "a" } } } }],
    ["nested.child.id=a&nested.child.count=2", { nested: { child: { id: "a", count: "2" } } }],
    // Text.
    ["name", {}],
    ["name=", {}],
    ["nickname=", { nickname: "" }],
    ["nickname", { nickname: "" }],
    ["name=a+b", { name: "a b" }],
    ["name=a%20b", { name: "a b" }],
    ["name=a%2Bb", { name: "a+b" }],
    ["name=+%2B++%C3%A9+", { name: " +  é " }],
    ["name=a=b", { name: "a=b" }],
    ["name=a?b", { name: "a?b" }],
    ["name=a/b", { name: "a/b" }],
    ["name=a%26b%3Dc", { name: "a&b=c" }],
    ["name=a;b", { name: "a;b" }],
    ["name=%C3%A9%F0%9F%94%91", { name: "é🔑" }],
    ["name=__proto__", { name: "__proto__" }],
    ["name=null", { name: "null" }],
    ["name=a#b", { name: "a" }],
    // Booleans and integers.
    ["boolValue=true", { boolValue: true }],
    ["boolValue=false", {}],
    ["int32Value=-2147483648", { int32Value: -2147483648 }],
    ["int32Value=2147483647", { int32Value: 2147483647 }],
    ["sint32Value=-1", { sint32Value: -1 }],
    ["sfixed32Value=-1", { sfixed32Value: -1 }],
    ["uint32Value=4294967295", { uint32Value: 4294967295 }],
    ["fixed32Value=4294967295", { fixed32Value: 4294967295 }],
    ["int64Value=-9223372036854775808", { int64Value: "-9223372036854775808" }],
    ["int64Value=9007199254740993", { int64Value: "9007199254740993" }],
    ["sint64Value=9223372036854775807", { sint64Value: "9223372036854775807" }],
    ["sfixed64Value=-1", { sfixed64Value: "-1" }],
    ["uint64Value=18446744073709551615", { uint64Value: "18446744073709551615" }],
    ["fixed64Value=18446744073709551615", { fixed64Value: "18446744073709551615" }],
    ["optionalCount=0", { optionalCount: 0 }],
    ["int32Value=0", {}],
    // Floating point.
    ["doubleValue=1.5", { doubleValue: 1.5 }],
    ["doubleValue=-1e-7", { doubleValue: -1e-7 }],
    ["doubleValue=1E5", { doubleValue: 100000 }],
    ["doubleValue=NaN", { doubleValue: "NaN" }],
    ["doubleValue=Infinity", { doubleValue: "Infinity" }],
    ["doubleValue=-Infinity", { doubleValue: "-Infinity" }],
    ["floatValue=0.5", { floatValue: 0.5 }],
    ["doubleValue=9007199254740993", { doubleValue: 9007199254740992 }],
    // Bytes: standard and URL-safe, padded or not, and with an unencoded plus sign.
    ["bytesValue=%2B%2F8%3D", { bytesValue: "+/8=" }],
    ["bytesValue=+/8=", { bytesValue: "+/8=" }],
    ["bytesValue=-_8=", { bytesValue: "+/8=" }],
    ["bytesValue=-_8", { bytesValue: "+/8=" }],
    ["bytesValue=+/8", { bytesValue: "+/8=" }],
    ["bytesValue=", {}],
    // Enums.
    ["color=RED", { color: "RED" }],
    ["color=1", { color: "RED" }],
    ["color=-1", { color: "ULTRAVIOLET" }],
    ["color=0", {}],
    ["color=COLOR_UNSPECIFIED", {}],
    ["color=77", { color: 77 }],
    // Repeated fields.
    ["tags=a&tags=b&tags=a", { tags: ["a", "b", "a"] }],
    ["tags=", { tags: [""] }],
    ["tags=a,b", { tags: ["a,b"] }],
    ["tags=a&name=x&tags=b", { tags: ["a", "b"], name: "x" }],
    ["numbers=1&numbers=2", { numbers: [1, 2] }],
    ["longs=9007199254740993", { longs: ["9007199254740993"] }],
    ["doubles=1.5&doubles=NaN", { doubles: [1.5, "NaN"] }],
    ["flags=true&flags=false", { flags: [true, false] }],
    ["blobs=AQI&blobs=Aw==", { blobs: ["AQI=", "Aw=="] }],
    ["colors=RED&colors=2", { colors: ["RED", "GREEN"] }],
    ["nested.tags=a&nested.tags=b", { nested: { tags: ["a", "b"] } }],
    ["texts=a&texts=b", { texts: ["a", "b"] }],
    [
      "times=2026-11-21T08:00:00Z&times=1970-01-01T00:00:00Z",
      { times: ["2026-11-21T08:00:00Z", "1970-01-01T00:00:00Z"] },
    ],
    // Well-known types, in their JSON form.
    ["timestamp=2026-11-21T08:00:00.5Z", { timestamp: "2026-11-21T08:00:00.500Z" }],
    ["timestamp=2026-11-21T08:00:00%2B01:00", { timestamp: "2026-11-21T07:00:00Z" }],
    ["duration=1.5s", { duration: "1.500s" }],
    ["duration=-3s", { duration: "-3s" }],
    ["mask=name,nested.longName", { mask: "name,nested.longName" }],
    ["mask=", { mask: "" }],
    ["boolWrapper=false", { boolWrapper: false }],
    ["int32Wrapper=0", { int32Wrapper: 0 }],
    ["uint32Wrapper=7", { uint32Wrapper: 7 }],
    ["int64Wrapper=9007199254740993", { int64Wrapper: "9007199254740993" }],
    ["uint64Wrapper=18446744073709551615", { uint64Wrapper: "18446744073709551615" }],
    ["floatWrapper=0.5", { floatWrapper: 0.5 }],
    ["doubleWrapper=-Infinity", { doubleWrapper: "-Infinity" }],
    ["stringWrapper=", { stringWrapper: "" }],
    ["stringWrapper=true", { stringWrapper: "true" }],
    ["bytesWrapper=AQI", { bytesWrapper: "AQI=" }],
    ['struct={"a":[1,null]}', { struct: { a: [1, null] } }],
    ["value=null", { value: null }],
    ['value="a"', { value: "a" }],
    ["value=9007199254740993", { value: 9007199254740992 }],
    ["list=[1,{}]", { list: [1, {}] }],
    // Oneofs.
    ["text=a", { text: "a" }],
    ["text=", { text: "" }],
    ["number=0", { number: "0" }],
    ["part.id=a&part.count=1", { part: { id: "a", count: "1" } }],
    ["wrapped=a", { wrapped: "a" }],
  ];
  for (const [query, request] of rows) {
    it(`?${query}`, async () => {
      expect(await get(query)).toEqual(request);
    });
  }

  it("accepts names a hundred fields deep", async () => {
    const names = `nested.${"child.".repeat(50)}id`;
    expect(await get(`${names}=a`)).toHaveProperty(names, "a");
  });
});

describe("an invalid query value is refused and its field named", () => {
  const rows: [query: string, field: string][] = [
    ["boolValue=", "boolValue"],
    ["boolValue", "boolValue"],
    ["boolValue=1", "boolValue"],
    ["boolValue=True", "boolValue"],
    ["boolValue=yes", "boolValue"],
    ["bool_value=%20true", "boolValue"],
    ["int32Value=", "int32Value"],
    ["int32Value=a", "int32Value"],
    ["int32Value=1.5", "int32Value"],
    ["int32Value=0x10", "int32Value"],
    ["int32Value=+1", "int32Value"],
    ["int32Value=1%20", "int32Value"],
    ["int32Value=1,2", "int32Value"],
    ["int32Value=null", "int32Value"],
    ["int32Value=2147483648", "int32Value"],
    ["sint32Value=-2147483649", "sint32Value"],
    ["sfixed32Value=2147483648", "sfixed32Value"],
    ["uint32Value=-1", "uint32Value"],
    ["fixed32Value=4294967296", "fixed32Value"],
    ["int64Value=9223372036854775808", "int64Value"],
    ["sint64Value=-9223372036854775809", "sint64Value"],
    ["sfixed64Value=1e3", "sfixed64Value"],
    ["uint64Value=18446744073709551616", "uint64Value"],
    ["fixed64Value=-1", "fixed64Value"],
    ["int64Value=%D9%A1", "int64Value"],
    ["floatValue=1e39", "floatValue"],
    ["doubleValue=1e400", "doubleValue"],
    ["doubleValue=", "doubleValue"],
    ["doubleValue=inf", "doubleValue"],
    ["doubleValue=nan", "doubleValue"],
    ["doubleValue=0x1", "doubleValue"],
    ["doubleValue=1_000", "doubleValue"],
    ["doubleValue=.", "doubleValue"],
    ["bytesValue=A", "bytesValue"],
    ["bytesValue=A$==", "bytesValue"],
    ["bytesValue=AQI%3DAQI%3D", "bytesValue"],
    ["bytesValue=AQ%3DI", "bytesValue"],
    ["bytesValue=AQI%0A", "bytesValue"],
    ["bytesValue=%3D%3D%3D%3D", "bytesValue"],
    ["color=", "color"],
    ["color=red", "color"],
    ["color=BLUE", "color"],
    ["color=1.0", "color"],
    ["color=99999999999", "color"],
    ["color=__proto__", "color"],
    ["numbers=1&numbers=x", "numbers"],
    ["colors=RED&colors=BLUE", "colors"],
    ["timestamp=", "timestamp"],
    ["timestamp=yesterday", "timestamp"],
    ["timestamp=2026-11-21", "timestamp"],
    ["timestamp=2026-11-21T08:00:00", "timestamp"],
    ["timestamp=2026-13-21T08:00:00Z", "timestamp"],
    ["timestamp=2026-02-30T08:00:00Z", "timestamp"],
    ["timestamp=2026-11-21T08:00:00+01:00", "timestamp"],
    ["duration=5", "duration"],
    ["duration=5m", "duration"],
    ["duration=5s!", "duration"],
    ["duration=", "duration"],
    ["duration=999999999999s", "duration"],
    ["duration=1.1234567890s", "duration"],
    ["mask=display_name", "mask"],
    ["times=2026-11-21T08:00:00Z&times=now", "times"],
    ["int32Wrapper=a", "int32Wrapper"],
    ["boolWrapper=1", "boolWrapper"],
    ["struct=[]", "struct"],
    ["struct={", "struct"],
    ["struct=a", "struct"],
    ['struct={"a":1,"a":2}', "struct"],
    ["value=a", "value"],
    ["list={}", "list"],
    ["nested.count=x", "nested.count"],
    ["nested.child.count=x", "nested.child.count"],
  ];
  for (const [query, field] of rows) {
    it(`?${query}`, async () => {
      expect(await get(query)).toEqual(invalid("FIELD_INVALID", field));
    });
  }

  it("a Struct of ten thousand levels", async () => {
    const query = `value=${"[".repeat(10_000)}${"]".repeat(10_000)}`;
    expect(await get(query)).toEqual(invalid("FIELD_INVALID", "value"));
  });
});

describe("an unknown query name is refused and quoted", () => {
  const names = [
    "bogus",
    "Name",
    "NAME",
    "DisplayName",
    "",
    "%20name",
    "name%00",
    "name.x",
    "name.",
    ".name",
    "nested.",
    "nested..id",
    "nested.bogus",
    "nested",
    "nested.child",
    "nesteds",
    "nesteds.id",
    "nesteds[0].id",
    "tags[]",
    "tags[0]",
    "tags.0",
    "labels",
    "labels.a",
    "labels[a]",
    "nested.labels",
    "nestedByNumber.1.id",
    "any",
    "empty",
    "raw",
    "choice",
    "choice.text",
    "stringWrapper.value",
    "__proto__",
    "constructor",
    "constructor.prototype",
    "toString",
    "hasOwnProperty",
    "$typeName",
    "nested.__proto__",
    "alt",
    `nested.${"child.".repeat(300)}id`,
  ];
  for (const name of names) {
    const shown = name.length > 60 ? `${name.slice(0, 20)}… (${name.length} characters)` : name;
    it(`?${shown}=1`, async () => {
      expect(await get(`${name}=1`)).toEqual(invalid("PARAMETER_UNKNOWN", excerpt(decodeURIComponent(name))));
    });
  }

  it("by a call without fields left for a query", async () => {
    const rule = { post: "/v1", body: "*" };
    expect(await received(rule, "POST /v1?name=a", { body: "{}" })).toEqual(
      invalid("PARAMETER_UNKNOWN", "name"),
    );
    expect(await received(rule, "POST /v1?bogus", { body: "{}" })).toEqual(
      invalid("PARAMETER_UNKNOWN", "bogus"),
    );
    expect(await received(rule, "POST /v1?name=a")).toEqual(invalid("PARAMETER_UNKNOWN", "name"));
    expect(await received(rule, "POST /v1?&", { body: "{}" })).toEqual({});
  });
});

describe("a duplicate parameter is refused", () => {
  const rows: [query: string, field: string][] = [
    ["name=a&name=b", "name"],
    ["name=a&name=a", "name"],
    ["name=&name=", "name"],
    ["displayName=a&display_name=a", "displayName"],
    ["other-name=a&renamed=b", "other-name"],
    ["nested.longName=a&nested.long_name=b", "nested.longName"],
    ["int32Value=1&int32Value=1", "int32Value"],
    ["timestamp=2026-11-21T08:00:00Z&timestamp=2026-11-21T08:00:00Z", "timestamp"],
    ["text=a&text=a", "text"],
  ];
  for (const [query, field] of rows) {
    it(`?${query}`, async () => {
      expect(await get(query)).toEqual(invalid("PARAMETER_DUPLICATE", field));
    });
  }

  it("except ?tags=a&tags=b for a repeated field", async () => {
    expect(await get("tags=a&tags=b")).toEqual({ tags: ["a", "b"] });
  });
});

describe("a query that is not percent-encoded UTF-8 is refused", () => {
  for (const query of [
    "name=%",
    "name=%2",
    "name=%zz",
    "name=%FF",
    "%FF=a",
    "name=%C0%AF",
    "name=%ED%A0%80",
  ]) {
    it(`?${query}`, async () => {
      expect(await get(query)).toEqual(invalid("TARGET_INVALID"));
    });
  }
});
