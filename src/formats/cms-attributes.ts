/** Reads the signed attributes of CMS (RFC 5652, section 11). */
import type { BaseBlock } from "asn1js";
import { type SignedAndUnsignedAttributes, Time } from "pkijs";
import { FormatError } from "./format-error.ts";

/**
 * Reads attributes, each of which must occur once, have one value, and stand in the order of DER: the bytes that the
 * signer signed are those of the message.
 *
 * @returns their values by their object identifiers
 * @throws FormatError
 */
export function readAttributes({ attributes }: SignedAndUnsignedAttributes): ReadonlyMap<string, BaseBlock> {
  const values = new Map<string, BaseBlock>();
  let previous = new Uint8Array();
  for (const attribute of attributes) {
    const {
      type,
      values: [value, another],
    } = attribute;
    const encoded = new Uint8Array(attribute.toSchema().toBER());
    if (values.has(type)) throw new FormatError(`the signed attribute ${type} occurs twice`);
    if (!isBlock(value) || another !== undefined)
      throw new FormatError(`the signed attribute ${type} must have one value`);
    if (Buffer.compare(previous, encoded) > 0)
      throw new FormatError("the signed attributes are not in the order of DER");
    values.set(type, value);
    previous = encoded;
  }
  return values;
}

/** Reads a signing time. @returns undefined if there is none @throws FormatError */
export function readTime(value: BaseBlock | undefined): Date | undefined {
  if (value === undefined) return undefined;
  const time = parseTime(value);
  if (time !== undefined && !Number.isNaN(time.getTime())) return time;
  throw new FormatError("the signed attribute signing-time is not a time");
}

function parseTime(schema: BaseBlock): Date | undefined {
  try {
    return new Time({ schema }).value;
  } catch {
    return undefined;
  }
}

function isBlock(value: unknown): value is BaseBlock {
  return typeof value === "object" && value !== null && "toBER" in value;
}
