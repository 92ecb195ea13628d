/** Reads CMS signed attributes (RFC 5652, section 11). */
import { type BaseBlock, GeneralizedTime, UTCTime } from "asn1js";
import type { SignedAndUnsignedAttributes } from "pkijs";
import { FormatError } from "./format-error.ts";

/**
 * Reads attributes. Each must occur once and have one value, and they must be in DER order: the signed bytes
 * are the message's own bytes.
 *
 * @returns attribute values by object identifier
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
      throw new FormatError("the signed attributes are not in DER order");
    values.set(type, value);
    previous = encoded;
  }
  return values;
}

/**
 * Reads a signing time.
 *
 * @returns undefined if absent
 * @throws FormatError
 */
export function readTime(value: BaseBlock | undefined): Date | undefined {
  if (value === undefined) return undefined;
  const time = parseTime(value);
  if (time !== undefined) return time;
  throw new FormatError("the signed attribute signing-time is not a valid time");
}

/**
 * Whole seconds and Z (RFC 5652, section 11.3). asn1js would read month 13 as the next January, and text as
 * 1899.
 */
function parseTime(value: BaseBlock): Date | undefined {
  if (!(value instanceof UTCTime)) return undefined;
  const text = Buffer.from(value.valueBlock.valueHexView).toString("latin1");
  // asn1js derives GeneralizedTime from UTCTime, whose years start at 1950.
  const century = value instanceof GeneralizedTime ? "" : text < "50" ? "20" : "19";
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(century + text);
  if (parts === null) return undefined;
  const [, year, month, day, hour, minute, second] = parts;
  const written = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const time = new Date(written);
  return !Number.isNaN(time.getTime()) && time.toISOString() === written ? time : undefined;
}

function isBlock(value: unknown): value is BaseBlock {
  return typeof value === "object" && value !== null && "toBER" in value;
}
