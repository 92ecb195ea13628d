import { create, type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import { field as fieldOption } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, it } from "vitest";
import { createCallRegistry } from "../../src/cli/verbs/call-registry.ts";
import { createFastValidator, describeRule } from "../../src/server/interceptors/validation.ts";
import { loadPackages } from "../support/whole-program.ts";

/** Text fields that have a pattern. */
const fields = [...createCallRegistry(await loadPackages())].flatMap((desc) =>
  desc.kind === "message" ? desc.fields.filter((field) => patternOf(field) !== "") : [],
);

function patternOf(field: DescField): string {
  const { type } = hasOption(field, fieldOption)
    ? getOption(field, fieldOption)
    : { type: { case: undefined } };
  return field.fieldKind === "scalar" && type.case === "string" ? type.value.pattern : "";
}

/** Texts at the edges of patterns: each is accepted by some fields and rejected by others. */
const texts = {
  "a word": "thermometer",
  "a line break within": "a\nb",
  "a line break at the end": "a\n",
  "a line separator": "a\u2028b",
  "a null": "\0",
  "a control character of Latin-1": "\u0085",
  "a delete character": "\u007f",
  "a letter beyond the first plane": "𝒜",
  "an address": `0x${"a1".repeat(20)}`,
  "an address with a line break": `0x${"a1".repeat(20)}\n`,
  "an address in capitals": `0x${"A1".repeat(20)}`,
  "a hash": "0f".repeat(32),
  "a label": "team=payments",
  "a host with a port": "vpn.example.com:51820",
  "a hash with full-width digits": "０ｆ".repeat(32),
};

function findsFault(validator: Validator, desc: DescMessage, field: DescField, text: string): boolean {
  const message = create(desc);
  reflect(desc, message).set(field, text);
  const { violations = [] } = validator.validate(desc, message);
  return violations.some((violation) => violation.ruleId === "string.pattern");
}

describe("proto patterns", () => {
  it("exist", () => {
    expect(fields.length).toBeGreaterThan(30);
  });

  const [re2, ours] = [createValidator(), createFastValidator()];
  it.each(Object.entries(texts))("mean the same to RE2 and to the platform: %s", (_name, text) => {
    const found = (validator: Validator) =>
      fields.map((field) => `${field}: ${findsFault(validator, field.parent, field, text)}`);
    expect(found(ours)).toEqual(found(re2));
  });

  it("are explained to callers in words", () => {
    for (const field of fields) {
      const message = `does not match regex pattern \`${patternOf(field)}\``;
      expect(describeRule(message), String(field)).toMatch(/^(must|may) /);
    }
  });

  it("each accept and reject some of these texts", () => {
    for (const field of fields) {
      const verdicts = Object.values(texts).map((text) => findsFault(ours, field.parent, field, text));
      expect(new Set(verdicts), String(field)).toEqual(new Set([true, false]));
    }
  });
});
