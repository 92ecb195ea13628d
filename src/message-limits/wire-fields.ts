/** Describes how the fields of a message are encoded in the Protobuf wire format. */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { findSizeRules } from "./size-rules.ts";

export interface WireField {
  readonly field: DescField;
  /** The wire type of one value. */
  readonly wireType: WireType;
  /** Whether one record may hold several values. */
  readonly isPackable: boolean;
  /** The message type of a value; undefined for scalars and map entries. */
  readonly message: DescMessage | undefined;
  /** The values of a map entry by field number: 1 is the key, 2 the value. */
  readonly entry: WireFields | undefined;
  /** Maximum elements of a list or map. */
  readonly maxItems: number;
  /**
   * A text with more bytes than this exceeds its character limit: UTF-8 has at most four bytes per character.
   */
  readonly maxTextBytes: number;
}

/** The fields of a message by number. */
export type WireFields = ReadonlyMap<number, WireField>;

const known = new WeakMap<DescMessage, WireFields>();

/** Lists the fields of a message. The list is computed once. */
export function findWireFields(desc: DescMessage): WireFields {
  return known.getOrInsertComputed(desc, describeFields);
}

function describeFields({ fields }: DescMessage): WireFields {
  return new Map(fields.map((field) => [field.number, describeField(field)]));
}

function describeField(field: DescField): WireField {
  const { maxItems, maxCharacters } = findSizeRules(field);
  if (field.fieldKind === "map") {
    const plain = { field, isPackable: false, entry: undefined, maxItems: Infinity, maxTextBytes: Infinity };
    const key = { ...plain, wireType: findWireType(field.mapKey), message: undefined };
    const value = { ...plain, wireType: findValueType(field), message: field.message };
    const entry = new Map([
      [1, key],
      [2, value],
    ]);
    return {
      field,
      wireType: WireType.LengthDelimited,
      isPackable: false,
      message: undefined,
      entry,
      maxItems,
      maxTextBytes: Infinity,
    };
  }
  const wireType = findValueType(field);
  return {
    field,
    wireType,
    isPackable: field.fieldKind === "list" && field.message === undefined && !isSized(wireType),
    message: field.message,
    entry: undefined,
    maxItems,
    maxTextBytes: 4 * maxCharacters,
  };
}

function isSized(wireType: WireType): boolean {
  return wireType === WireType.LengthDelimited;
}

function findValueType(field: DescField): WireType {
  if (field.message !== undefined) {
    const isGroup = field.fieldKind !== "map" && "delimitedEncoding" in field && field.delimitedEncoding;
    return isGroup ? WireType.StartGroup : WireType.LengthDelimited;
  }
  return field.scalar === undefined ? WireType.Varint : findWireType(field.scalar);
}

function findWireType(scalar: ScalarType): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}
