/**
 * Builds request messages from forms, as OAuth 2 clients send them (RFC 6749, section 3.2 and appendix B).
 */
import { create, type DescMessage } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { messageTooComplex, refuse } from "../errors.ts";
import type { MessageLimits } from "../message-limits/structure-limits.ts";
import { type BodyMessage, readFieldValue, setField } from "./fields.ts";
import { splitQuery } from "./query.ts";

/** Maximum parameters of a form. Each is decoded, even if it is ignored. */
const maxParameters = 1000;

/**
 * Parses a form. Unknown parameters and those without a value are ignored.
 *
 * @throws PARAMETER_DUPLICATE, FIELD_INVALID, TARGET_INVALID, MESSAGE_TOO_COMPLEX
 */
export function parseForm(
  desc: DescMessage,
  bytes: Uint8Array,
  { registry, structure }: MessageLimits,
): BodyMessage {
  const given = readParameters(bytes, Math.min(structure.maxElements, maxParameters));
  const message = create(desc);
  for (const field of desc.fields) {
    const texts = given.get(field.jsonName);
    if (texts === undefined) continue;
    const parameter = field.jsonName;
    if (texts.length > 1 && field.fieldKind !== "list")
      throw refuse("PARAMETER_DUPLICATE", `the parameter ${parameter} occurs more than once; send it once`, {
        parameter,
      });
    setField(reflect(desc, message), [field], readFieldValue([field], texts, registry), false);
  }
  return { message, has: ([field]) => field !== undefined && given.has(field.jsonName) };
}

/**
 * Returns the parameters that have a value. Errors must not quote any part of the form, which may be a
 * secret.
 */
function readParameters(bytes: Uint8Array, maxParameters: number): ReadonlyMap<string, readonly string[]> {
  const given = new Map<string, string[]>();
  let parts = 0;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    for (const [name, value] of splitQuery(text)) {
      parts += 1;
      if (parts > maxParameters) break;
      if (value === "") continue;
      given.getOrInsert(name, []).push(value);
    }
  } catch {
    throw refuse("TARGET_INVALID", "the form is not valid percent-encoded UTF-8");
  }
  if (parts > maxParameters) throw messageTooComplex("parameters", maxParameters);
  return given;
}
