import { ScalarType } from "@bufbuild/protobuf";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { type ByteLimits, describeBytes } from "../../src/openapi/base64.ts";
import { whyNotStrictScalar } from "../../src/transcoding/strict-values.ts";

/** Every text of up to this many characters, each "A" or padding. */
function listTexts(maxLength: number): string[] {
  const texts = [""];
  for (let i = 0; i < texts.length; i++) {
    const text = texts[i] as string;
    if (text.length < maxLength) texts.push(`${text}A`, `${text}=`);
  }
  return texts;
}

/** Whether the server accepts a text: its parser decides, and then the length rule. */
function isTaken(text: string, { minBytes, maxBytes, mayBeEmpty }: ByteLimits): boolean {
  if (whyNotStrictScalar(ScalarType.BYTES, text) !== undefined) return false;
  const { length } = Buffer.from(text, "base64");
  if (length === 0 && mayBeEmpty) return true;
  return length >= minBytes && length <= (maxBytes ?? Number.POSITIVE_INFINITY);
}

function compile(limit: ByteLimits) {
  return new Ajv2020({ strict: false, validateFormats: false }).compile(describeBytes(limit));
}

/** Whether a text contains one or two bytes too many, which no pattern can detect from its length. */
function isBeyond(text: string, { minBytes, maxBytes = 0 }: ByteLimits): boolean {
  const { length } = Buffer.from(text, "base64");
  return minBytes !== maxBytes && maxBytes % 3 !== 0 && length > maxBytes && length <= maxBytes + 2;
}

/** Lists the texts on which the schema and the server do not agree. */
function listDiffering(texts: readonly string[], limit: ByteLimits): string[] {
  const validate = compile(limit);
  return texts.filter((text) => !isBeyond(text, limit) && validate(text) !== isTaken(text, limit));
}

const limits: ByteLimits[] = [
  { minBytes: 0, maxBytes: undefined, mayBeEmpty: true },
  { minBytes: 1, maxBytes: undefined, mayBeEmpty: false },
  { minBytes: 4, maxBytes: 4, mayBeEmpty: false },
  { minBytes: 5, maxBytes: 5, mayBeEmpty: true },
  { minBytes: 6, maxBytes: 6, mayBeEmpty: true },
  ...[1, 2, 3, 4, 5].flatMap((minBytes) => [
    { minBytes, maxBytes: 7, mayBeEmpty: false },
    { minBytes, maxBytes: 8, mayBeEmpty: false },
    { minBytes, maxBytes: 6, mayBeEmpty: true },
  ]),
];

describe("the schema for bytes", () => {
  const texts = listTexts(13);

  it.each(limits)("accepts exactly the base64 that the server accepts: %o", (limit) => {
    expect(listDiffering(texts, limit)).toEqual([]);
  });

  it.each([
    { minBytes: 3309, maxBytes: 3309, mayBeEmpty: true },
    { minBytes: 29, maxBytes: 65_564, mayBeEmpty: false },
    { minBytes: 0, maxBytes: 65_536, mayBeEmpty: true },
  ])("accepts exactly the lengths that the server accepts: %o", (limit) => {
    const edges = [0, limit.minBytes, limit.maxBytes].flatMap((bytes) => [bytes - 1, bytes, bytes + 1]);
    const near = edges
      .filter((bytes) => bytes >= 0)
      .flatMap((bytes) => {
        const padded = Buffer.alloc(bytes).toString("base64");
        return [padded, padded.replace(/=+$/, "")];
      });
    expect(listDiffering(near, limit).map(({ length }) => length)).toEqual([]);
  });

  it("accepts both alphabets, even mixed, but no white space", () => {
    const validate = compile({ minBytes: 0, maxBytes: undefined, mayBeEmpty: true });
    expect(["+/+/", "-_-_", "+_-/", "AAA"].map((text) => validate(text))).not.toContain(false);
    expect(["AA A", " AAAA", "AAAA\r\n"].map((text) => validate(text))).not.toContain(true);
  });
});
