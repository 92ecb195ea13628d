import { describe, expect, it } from "vitest";
import { scanJson } from "../../src/message-limits/json-structure.ts";
import { refusal } from "../support/refusal.ts";

const scan = (text: string, maxElements = 20_000) => scanJson(Buffer.from(text), { maxElements });
const complex = { code: "InvalidArgument", reason: "MESSAGE_TOO_COMPLEX" };
const refusalOf = (text: string, maxElements?: number) =>
  refusal(Promise.resolve().then(() => scan(text, maxElements)));

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
  expect(scan(text).members).toBe(members);
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
  expect(scan(text).hasLongNumber).toBe(hasLongNumber);
});

describe("scanJson refuses", () => {
  it("more values than the limit, but accepts the limit", async () => {
    expect(scan(`[${"1,".repeat(97)}1]`, 100)).toBeDefined();
    expect(await refusalOf(`[${"1,".repeat(100)}1]`, 100)).toEqual(complex);
    expect(await refusalOf(`[${"[],".repeat(50)}[]]`, 100)).toEqual(complex);
  });

  it("more than 200 levels, but accepts 200", async () => {
    expect(scan(`${"[".repeat(200)}${"]".repeat(200)}`)).toBeDefined();
    expect(await refusalOf(`${"[".repeat(201)}${"]".repeat(201)}`)).toEqual(complex);
    expect(await refusalOf('{"a":'.repeat(201))).toEqual(complex);
  });

  it("more than 1,000 digits in a row, but accepts 1,000", async () => {
    expect(scan(`[${"1".repeat(1000)}]`)).toBeDefined();
    expect(await refusalOf(`[${"1".repeat(1001)}]`)).toEqual(complex);
  });

  it("nothing inside a text, whatever it looks like", () => {
    expect(scan(`["${"[,{:".repeat(100_000)}"]`, 100).members).toBe(0);
  });
});
