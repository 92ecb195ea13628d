import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CreateMultisigRequestSchema } from "#gen/defi/defi_service_pb.ts";
import { BatchSignRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { scanJson } from "../../src/message-limits/json-structure.ts";
import { scanMessage } from "../../src/message-limits/wire-structure.ts";
import { EverythingSchema } from "../gen/testing/kinds_pb.ts";
import { refusal } from "../support/refusal.ts";
import { invalid } from "../support/refusals.ts";

const scanText = (text: string, maxElements = 20_000) => scanJson(Buffer.from(text), { maxElements });
const complex = { code: "InvalidArgument", reason: "MESSAGE_TOO_COMPLEX" };
const textRefusal = (text: string, maxElements?: number) =>
  refusal(Promise.resolve().then(() => scanText(text, maxElements)));
const memberRows: [text: string, members: number][] = [
  ["", 0],
  ["7", 0],
  ["{}", 0],
  ['{"a":1}', 1],
  ['{"a":1,"a":2}', 2],
  ['{"a":{"b":[{"c":1},{}]},"d":":"}', 4],
  ['{"a\\":":"{\\"b\\":1}"}', 1],
  ['{"a":"\\\\"}', 1],
];

it.each(memberRows)("scanJson counts the members of all objects: %s", (text, members) => {
  expect(scanText(text).members).toBe(members);
});

const numberRows: [text: string, hasLongNumber: boolean][] = [
  ['{"a":999999999999999}', false],
  ['{"a":"9007199254740993"}', false],
  ['{"a":[true,false,null]}', false],
  ['{"1e5":1.5}', false],
  ['{"a":9007199254740993}', true],
  ["[1e18]", true],
  ["[1E+18]", true],
  ["[9.007199254740993e15]", true],
];

it.each(numberRows)("scanJson detects numbers that a double may round: %s: %s", (text, hasLongNumber) => {
  expect(scanText(text).hasLongNumber).toBe(hasLongNumber);
});

describe("scanJson refuses", () => {
  it("more values than the limit, but accepts the limit", async () => {
    expect(scanText(`[${"1,".repeat(97)}1]`, 100)).toBeDefined();
    expect(await textRefusal(`[${"1,".repeat(100)}1]`, 100)).toEqual(complex);
    expect(await textRefusal(`[${"[],".repeat(50)}[]]`, 100)).toEqual(complex);
  });

  it("more than 200 levels, but accepts 200", async () => {
    expect(scanText(`${"[".repeat(200)}${"]".repeat(200)}`)).toBeDefined();
    expect(await textRefusal(`${"[".repeat(201)}${"]".repeat(201)}`)).toEqual(complex);
    expect(await textRefusal('{"a":'.repeat(201))).toEqual(complex);
  });

  it("more than 1,000 digits in a row, but accepts 1,000", async () => {
    expect(scanText(`[${"1".repeat(1000)}]`)).toBeDefined();
    expect(await textRefusal(`[${"1".repeat(1001)}]`)).toEqual(complex);
  });

  it("nothing inside a text, whatever it looks like", () => {
    expect(scanText(`["${"[,{:".repeat(100_000)}"]`, 100).members).toBe(0);
  });
});

/** Small enough that the scan skips nothing. */
const limits = { maxElements: 50, maxUnknownFields: 10 };
const scan = (desc: DescMessage, bytes: Uint8Array, other: Partial<typeof limits> = {}) =>
  scanMessage(desc, bytes, { ...limits, ...other });
const refusalOf = (desc: DescMessage, bytes: Uint8Array, other: Partial<typeof limits> = {}) =>
  refusal(Promise.resolve().then(() => scan(desc, bytes, other)));
const hex = (text: string, count = 1) => Buffer.from(text.repeat(count), "hex");
const malformed = { code: "InvalidArgument", reason: "MESSAGE_MALFORMED" };

describe("scanMessage accepts", () => {
  const full = toBinary(
    EverythingSchema,
    create(EverythingSchema, {
      name: "n",
      int64Value: -1n,
      fixed32Value: 7,
      doubleValue: 1.5,
      bytesValue: new Uint8Array(1000),
      numbers: [1, 300, -1],
      doubles: [1, 2],
      tags: ["a", "b"],
      nesteds: [{ id: "a", child: { tags: ["x"] } }],
      labels: { a: "b" },
      nestedByNumber: { 7: { id: "c" } },
      choice: { case: "part", value: { count: 3n } },
      timestamp: { seconds: 5n },
      stringWrapper: "w",
      struct: { a: [1, { b: null }] },
    }),
  );

  it("a message with fields of every kind", () => {
    expect(() => scan(EverythingSchema, full)).not.toThrow();
  });

  it("a batch of 1,000 items, within the default server limits", () => {
    const data = Array.from({ length: 1000 }, () => new Uint8Array(4000));
    const bytes = toBinary(BatchSignRequestSchema, create(BatchSignRequestSchema, { keyId: "k", data }));
    const defaults = { maxElements: 20_000, maxUnknownFields: 1000 };
    expect(() => scan(BatchSignRequestSchema, bytes, defaults)).not.toThrow();
  });
});

describe("scanMessage refuses as too complex", () => {
  const malformedRows: [what: string, bytes: Uint8Array][] = [
    ["one field repeated many times", hex("0a00", 51)],
    ["elements of a list", hex("f20100", 51)],
    ["packed varints", Buffer.concat([hex("fa0133"), hex("01", 51)])],
    ["packed doubles", Buffer.concat([hex("8a029803"), Buffer.alloc(51 * 8)])],
    ["entries of a map", hex("c20200", 51)],
    ["unknown varints", hex("a80601", 11)],
    ["unknown texts", hex("aa0600", 11)],
    ["unknown groups", hex("ab06ac06", 11)],
    ["nested unknown groups", hex("ab06", 101)],
    ["elements of a nested message", Buffer.concat([hex("920366"), hex("2a00", 51)])],
  ];
  it.each(malformedRows)("%s", async (_what, bytes) => {
    expect(await refusalOf(EverythingSchema, bytes)).toEqual(complex);
  });

  it("more than 100 nested messages", async () => {
    const nest = (tag: string, bytes: Uint8Array): Buffer => {
      const { length } = bytes;
      const size = length < 128 ? [length] : [(length & 127) | 128, length >> 7];
      return Buffer.concat([hex(tag), Buffer.from(size), bytes]);
    };
    let bytes: Uint8Array = hex("0a0161");
    for (let level = 0; level < 110; level += 1) bytes = nest("22", bytes);
    expect(await refusalOf(EverythingSchema, nest("9203", bytes), { maxElements: 200 })).toEqual(complex);
  });
});

describe("scanMessage refuses by proto rules", () => {
  it("a list with more elements than max_items", async () => {
    const bytes = hex("120101", 1001);
    const large = { maxElements: 2000 };
    expect(await refusalOf(BatchSignRequestSchema, bytes, large)).toEqual(invalid("data"));
    expect(() => scan(BatchSignRequestSchema, hex("120101", 1000), large)).not.toThrow();
    const keys = hex("1a0101", 101);
    expect(await refusalOf(CreateMultisigRequestSchema, keys, large)).toEqual(invalid("signerPublicKeys"));
  });

  it("a text far longer than max_len", async () => {
    const bytes = Buffer.concat([hex("0a8020"), Buffer.alloc(4096, "k")]);
    expect(await refusalOf(BatchSignRequestSchema, bytes)).toEqual(invalid("keyId"));
  });
});

const rest = hex("0a0161", 10);
const rows: [what: string, bytes: Uint8Array][] = [
  ["a field that extends past the end of the message", Buffer.concat([rest, hex("0a7f")])],
  ["a nested field that extends past the end of its message", Buffer.concat([hex("9203020a05"), rest])],
  ["a tag that does not end", Buffer.concat([rest, hex("ffffffffff")])],
  ["a varint that does not end", Buffer.concat([rest, hex("58ff")])],
  ["a text tagged as a number", Buffer.concat([hex("0801"), rest])],
  ["a number tagged as a text", Buffer.concat([hex("5a0161"), rest])],
  ["the end of a group that has not begun", Buffer.concat([rest, hex("ac06")])],
  ["a group that does not end", Buffer.concat([rest, hex("ab06")])],
  ["the wire types 6 and 7", Buffer.concat([rest, hex("ae06")])],
];

it.each(rows)("scanMessage refuses as malformed: %s", async (_what, bytes) => {
  expect(await refusalOf(EverythingSchema, bytes)).toEqual(malformed);
});
