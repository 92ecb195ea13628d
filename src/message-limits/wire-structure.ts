/** Counts the parts of a message in the Protobuf wire format without building it. */
import type { DescMessage } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { messageTooComplex, refuse, refuseField } from "../errors.ts";
import { itemsTooMany, whyTooLong } from "./size-rules.ts";
import { maxMessageDepth, type StructureLimits } from "./structure-limits.ts";
import { findWireFields, type WireField, type WireFields } from "./wire-fields.ts";

/**
 * Scans the bytes of a message once. Follows the descriptor into nested messages and skips texts and bytes.
 *
 * @throws MESSAGE_TOO_COMPLEX, MESSAGE_MALFORMED, or FIELD_INVALID for a list longer than its rules allow
 */
export function scanMessage(desc: DescMessage, bytes: Uint8Array, limits: StructureLimits): void {
  // An element has at least one byte, an unknown field at least two, and the parser limits the depth itself.
  if (bytes.length <= Math.min(limits.maxElements, 2 * limits.maxUnknownFields)) return;
  new WireScan(bytes, limits).scanFields(findWireFields(desc), bytes.length, 1, "");
}

/** One scan, with its position and counts. */
class WireScan {
  readonly #bytes: Uint8Array;
  readonly #limits: StructureLimits;
  #at = 0;
  #elements = 0;
  #unknownFields = 0;

  constructor(bytes: Uint8Array, limits: StructureLimits) {
    this.#bytes = bytes;
    this.#limits = limits;
  }

  /**
   * Scans records up to a position, or up to the tag that ends a group.
   *
   * @param group the field number of the group; undefined outside a group
   */
  scanFields(fields: WireFields, end: number, depth: number, place: string, group?: number): void {
    if (depth > maxMessageDepth) throw messageTooComplex("levels of nesting", maxMessageDepth);
    const counts = new Map<WireField, number>();
    while (this.#at < end) {
      const tag = this.#readVarint(end);
      const number = Math.floor(tag / 8);
      const wireType = tag % 8;
      if (wireType === WireType.EndGroup) {
        if (number !== group) throw messageMalformed("a group ends without having begun");
        return;
      }
      const known = fields.get(number);
      if (known === undefined) {
        this.#countUnknown();
        this.#skip(number, wireType, end, depth);
        continue;
      }
      const added = this.#scanRecord(known, wireType, end, depth, place);
      if (known.maxItems === Infinity) continue;
      const count = (counts.get(known) ?? 0) + added;
      if (count > known.maxItems) throw itemsTooMany(known.field, join(place, known));
      counts.set(known, count);
    }
    if (group !== undefined) throw messageMalformed("a group does not end");
  }

  /** @returns the number of values in the record */
  #scanRecord(known: WireField, wireType: number, end: number, depth: number, place: string): number {
    if (known.isPackable && wireType === WireType.LengthDelimited) return this.#scanPacked(known, end);
    // The parser would read the bytes as the declared type, so its result would differ from this scan.
    if (wireType !== known.wireType)
      throw messageMalformed(`${known.field.jsonName} has the wrong wire type`);
    this.#count(1);
    if (known.message === undefined && known.entry === undefined) {
      const start = this.#at;
      this.#skip(known.field.number, wireType, end, depth);
      if (this.#at - start - maxVarintBytes > known.maxTextBytes)
        throw refuseField(join(place, known), whyTooLong(known.field));
      return 1;
    }
    const fields = known.entry ?? findWireFields(known.message as DescMessage);
    const inner = join(place, known);
    if (wireType === WireType.StartGroup) {
      this.scanFields(fields, end, depth + 1, inner, known.field.number);
    } else {
      const innerEnd = this.#readEnd(end);
      this.scanFields(fields, innerEnd, known.entry === undefined ? depth + 1 : depth, inner);
    }
    return 1;
  }

  #scanPacked(known: WireField, end: number): number {
    const start = this.#at;
    const innerEnd = this.#readEnd(end);
    let count = 0;
    if (known.wireType === WireType.Varint) {
      for (; this.#at < innerEnd; this.#at += 1) if ((this.#bytes[this.#at] as number) < 0x80) count += 1;
    } else {
      count = Math.ceil((innerEnd - start) / (known.wireType === WireType.Bit64 ? 8 : 4));
      this.#at = innerEnd;
    }
    this.#count(count);
    return count;
  }

  #skip(number: number, wireType: number, end: number, depth: number): void {
    switch (wireType) {
      case WireType.Varint:
        while ((this.#bytes[this.#at] as number) >= 0x80) this.#at += 1;
        this.#at += 1;
        break;
      case WireType.Bit64:
        this.#at += 8;
        break;
      case WireType.Bit32:
        this.#at += 4;
        break;
      case WireType.LengthDelimited:
        this.#at = this.#readEnd(end);
        break;
      case WireType.StartGroup:
        this.scanFields(noFields, end, depth + 1, "", number);
        break;
      default:
        throw messageMalformed(`a field has the wire type ${wireType}`);
    }
    if (this.#at > end) throw messageMalformed("a field extends past the end of its message");
  }

  #readEnd(end: number): number {
    const length = this.#readVarint(end);
    if (this.#at + length > end) throw messageMalformed("a field extends past the end of its message");
    return this.#at + length;
  }

  /** Reads a tag or a length: a varint of at most 32 bits. */
  #readVarint(end: number): number {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 28; factor *= 128) {
      if (this.#at >= end) break;
      const byte = this.#bytes[this.#at] as number;
      this.#at += 1;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80 && value < 2 ** 32) return value;
    }
    throw messageMalformed("a tag or length is not a 32-bit number");
  }

  #count(elements: number): void {
    this.#elements += elements;
    if (this.#elements > this.#limits.maxElements)
      throw messageTooComplex("values", this.#limits.maxElements);
  }

  #countUnknown(): void {
    this.#unknownFields += 1;
    const { maxUnknownFields } = this.#limits;
    if (this.#unknownFields > maxUnknownFields) throw messageTooComplex("unknown fields", maxUnknownFields);
  }
}

/** Maximum bytes of a length. */
const maxVarintBytes = 5;

const noFields: WireFields = new Map();

function join(place: string, { field }: WireField): string {
  return place === "" ? field.jsonName : `${place}.${field.jsonName}`;
}

/** Refuses bytes that cannot be parsed as the request's type. */
export function messageMalformed(reason: string): Error {
  return refuse("MESSAGE_MALFORMED", `the request cannot be parsed as its message type: ${reason}`);
}
