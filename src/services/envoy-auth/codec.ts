/**
 * Reads the questions of Envoy, and writes answers that were given before.
 *
 * A question has a token of 5 kB and twenty fields more, of which a decision needs three. Reading all of them by their
 * descriptor takes longer than everything else together, for a decision that is already known.
 */
import { isUtf8 } from "node:buffer";
import { create, toBinary } from "@bufbuild/protobuf";
import { AttributeContextSchema } from "#gen/envoy/service/auth/v3/attribute_context_pb.ts";
import {
  Authorization,
  CheckRequestSchema,
  type CheckResponse,
  CheckResponseSchema,
} from "#gen/envoy/service/auth/v3/external_auth_pb.ts";
import type { WireCodec, WireCodecs } from "../../protocol/wire-codec.ts";

/** The numbers of the fields on the way to those that are read (envoy/service/auth/v3/*.proto). */
const fields = {
  attributes: 1,
  request: 4,
  http: 2,
  headers: 3,
  headerMap: 13,
  extensions: 10,
  size: 9,
} as const;

/** The bytes of an answer that is given again and again. */
const written = new WeakMap<CheckResponse, Uint8Array>();

/** Notes that an answer never changes, so that its bytes can be sent again. */
export function keepBytes(answer: CheckResponse): CheckResponse {
  written.set(answer, toBinary(CheckResponseSchema, answer));
  return answer;
}

const codec: WireCodec = {
  read(bytes) {
    const found: Found = { headers: {}, contextExtensions: {}, isPlain: true };
    if (!readCheckRequest(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), found)) return undefined;
    const { headers, contextExtensions, isPlain } = found;
    if (!isPlain) return undefined;
    const attributes = create(AttributeContextSchema, { contextExtensions, request: { http: { headers } } });
    return create(CheckRequestSchema, { attributes });
  },
  write: (answer) => written.get(answer as CheckResponse),
};

/** The codecs of the package. */
export const codecs: WireCodecs = new Map([[Authorization.method.check, codec]]);

/** What is read. */
interface Found {
  /** At most the header `authorization`. */
  readonly headers: Record<string, string>;
  readonly contextExtensions: Record<string, string>;
  /** Whether the message has a form that Envoy sends. Otherwise the descriptor reads it. */
  isPlain: boolean;
}

/** A message, or a map entry, within the bytes. */
type ReadField = (number: number, from: number, to: number) => boolean;

/** @returns false if the bytes are not as Envoy writes them */
function readCheckRequest(bytes: Buffer, found: Found): boolean {
  const readHttp: ReadField = (number, from, to) => {
    if (number === fields.headerMap) found.isPlain = false;
    return number !== fields.headers || readEntry(bytes, from, to, found.headers, "authorization");
  };
  let requests = 0;
  const readRequest: ReadField = (number, from, to) =>
    number !== fields.http || (++requests === 1 && readMessage(bytes, from, to, readHttp));
  const readAttributes: ReadField = (number, from, to) => {
    if (number === fields.request) return readMessage(bytes, from, to, readRequest);
    return number !== fields.extensions || readEntry(bytes, from, to, found.contextExtensions);
  };
  const readRoot: ReadField = (number, from, to) =>
    number !== fields.attributes || readMessage(bytes, from, to, readAttributes);
  return readMessage(bytes, 0, bytes.length, readRoot) && requests === 1;
}

/** The most fields of a request; Envoy sends about thirty. */
const maxFields = 1000;

/** Calls back for each field that has a length. @returns false if the bytes are malformed, or the callback says so */
function readMessage(bytes: Buffer, from: number, to: number, read: ReadField): boolean {
  let at = from;
  for (let count = 0; at < to; count++) {
    const tag = readVarint(bytes, at, to);
    if (tag === undefined || count === maxFields) return false;
    at = tag.next;
    const wireType = tag.value & 7;
    const number = tag.value >>> 3;
    if (number === 0) return false;
    if (wireType === 0) {
      // The only number among the fields on the way. Its varint has up to ten bytes, and does not matter.
      if (number !== fields.size) return false;
      const last = bytes.subarray(at, Math.min(to, at + 10)).findIndex((byte) => byte < 0x80);
      if (last < 0) return false;
      at += last + 1;
      continue;
    }
    if (wireType !== 2) return false;
    const length = readVarint(bytes, at, to);
    if (length === undefined || length.next + length.value > to) return false;
    at = length.next + length.value;
    if (!read(number, length.next, at)) return false;
  }
  return at === to;
}

/** Reads the entry of a map. @param only the one key to keep; any if left out */
function readEntry(
  bytes: Buffer,
  from: number,
  to: number,
  into: Record<string, string>,
  only?: string,
): boolean {
  let key = "";
  let value: readonly [number, number] = [from, from];
  const isRead = readMessage(bytes, from, to, (number, start, end) => {
    if (number === 1) key = bytes.toString("utf8", start, end);
    if (!isUtf8(bytes.subarray(start, end))) return false;
    if (number === 2) value = [start, end];
    return true;
  });
  if (!isRead) return false;
  if (only !== undefined && key !== only) return true;
  // `__proto__` is a key like any other.
  Object.defineProperty(into, key, {
    value: bytes.toString("utf8", ...value),
    enumerable: true,
    configurable: true,
    writable: true,
  });
  return true;
}

/** Reads a varint of up to 28 bits: tags and lengths have no more here. */
function readVarint(bytes: Buffer, from: number, to: number): { value: number; next: number } | undefined {
  let value = 0;
  for (let i = 0; i < 4 && from + i < to; i++) {
    const byte = bytes[from + i] ?? 0;
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) return { value, next: from + i + 1 };
  }
  return undefined;
}
