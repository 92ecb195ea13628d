/**
 * Reads the questions of Envoy, and writes answers that were given before.
 *
 * A question has a token of 5 kB and twenty fields more, of which a decision needs two. Reading all of them by their
 * descriptor takes longer than everything else together, for a decision that is already known.
 */
import { isUtf8 } from "node:buffer";
import { create, toBinary } from "@bufbuild/protobuf";
import { AttributeContextSchema } from "#gen/envoy/service/auth/v3/attribute_context_pb.ts";
import {
  Authorization,
  type CheckRequest,
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

/** The header with the token. Envoy writes the names of headers in lower case. */
const authorizationName = "authorization";

/** The bytes of an answer that is given again and again. */
const written = new WeakMap<CheckResponse, Uint8Array>();

/** Notes that an answer never changes, so that its bytes can be sent again. */
export function keepBytes(answer: CheckResponse): CheckResponse {
  written.set(answer, toBinary(CheckResponseSchema, answer));
  return answer;
}

const codec: WireCodec = {
  read(bytes) {
    const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const found = findParts(buffer);
    return found && readOnce(buffer, found);
  },
  write: (answer) => written.get(answer as CheckResponse),
};

/** The codecs of the package. */
export const codecs: WireCodecs = new Map([[Authorization.method.check, codec]]);

/** The positions of the parts of a question that a decision needs. */
interface Parts {
  /** The value of the header `authorization`. */
  authorization: Range | undefined;
  /** The entries of the context extensions. */
  readonly extensions: Range[];
}

/** A range of bytes: the index of the first, and the one after the last. */
type Range = readonly [from: number, to: number];

/** A question that was read before. */
interface KnownQuestion {
  readonly authorization: Buffer;
  readonly request: CheckRequest;
}

/** The bytes of memory for questions that were read before; one with a token of 5 kB takes 11 kB. */
const maxKnownBytes = 16 * 1024 * 1024;

/**
 * The questions that were read before. A client asks the same again and again. The same object for it saves a new
 * string of the token, whose hash takes longer to compute than a decision.
 */
const questions = new Map<string, KnownQuestion>();
let knownBytes = 0;

/** The bytes at the end of a token by which a question is found. All bytes are compared after that. */
const tailBytes = 48;

/** Returns the request. Callers must not change it: it is given again for the same bytes. */
function readOnce(bytes: Buffer, { authorization, extensions }: Parts): CheckRequest | undefined {
  const [from, to] = authorization ?? [0, 0];
  const key = describeQuestion(bytes, authorization, extensions);
  const known = questions.get(key);
  if (known !== undefined && bytes.compare(known.authorization, 0, undefined, from, to) === 0)
    return known.request;
  const contextExtensions: Record<string, string> = {};
  for (const range of extensions) if (!readEntry(bytes, range, contextExtensions)) return undefined;
  const value = bytes.subarray(from, to);
  if (!isUtf8(value)) return undefined;
  const headers: Record<string, string> =
    authorization === undefined ? {} : { authorization: value.toString("utf8") };
  const attributes = create(AttributeContextSchema, { contextExtensions, request: { http: { headers } } });
  const request = create(CheckRequestSchema, { attributes });
  remember(key, { authorization: Buffer.from(value), request });
  return request;
}

/** Forgets all when there are too many: those that come often are soon back, and a look-up stays cheap. */
function remember(key: string, question: KnownQuestion): void {
  const size = 2 * (question.authorization.length + key.length) + 1000;
  if (knownBytes + size > maxKnownBytes) {
    questions.clear();
    knownBytes = 0;
  }
  questions.set(key, question);
  knownBytes += size;
}

/** Describes a question: all of its extensions, and the end of its authorization. */
function describeQuestion(
  bytes: Buffer,
  authorization: Range | undefined,
  extensions: readonly Range[],
): string {
  // With the lengths first, no two lists of extensions have the same description.
  let lengths = authorization === undefined ? "-" : "+";
  let text = "";
  for (const [from, to] of extensions) {
    lengths += `${to - from},`;
    text += bytes.toString("latin1", from, to);
  }
  if (authorization === undefined) return `${lengths};${text}`;
  const [from, to] = authorization;
  return `${lengths};${text}${bytes.toString("latin1", Math.max(from, to - tailBytes), to)}`;
}

/** A message, or a map entry, within the bytes. */
type ReadField = (number: number, from: number, to: number) => boolean;

/** @returns undefined if the bytes are not as Envoy writes them; they are read by the descriptor then */
function findParts(bytes: Buffer): Parts | undefined {
  const found: Parts = { authorization: undefined, extensions: [] };
  let requests = 0;
  const readHttp: ReadField = (number, from, to) => {
    // Raw headers come in a list.
    if (number === fields.headerMap) return false;
    return number !== fields.headers || findHeader(bytes, from, to, found);
  };
  const readRequest: ReadField = (number, from, to) =>
    number !== fields.http || (++requests === 1 && readMessage(bytes, from, to, readHttp));
  const readAttributes: ReadField = (number, from, to) => {
    if (number === fields.request) return readMessage(bytes, from, to, readRequest);
    if (number === fields.extensions) found.extensions.push([from, to]);
    return true;
  };
  const readRoot: ReadField = (number, from, to) =>
    number !== fields.attributes || readMessage(bytes, from, to, readAttributes);
  return readMessage(bytes, 0, bytes.length, readRoot) && requests === 1 ? found : undefined;
}

/** Notes where a header's value is, if it is the authorization. @returns false for a field to read by the descriptor */
function findHeader(bytes: Buffer, from: number, to: number, found: Parts): boolean {
  const entry = findEntry(bytes, from, to);
  if (entry === undefined) return false;
  const [keyFrom, keyTo] = entry.key;
  if (
    keyTo - keyFrom !== authorizationName.length ||
    bytes.toString("latin1", keyFrom, keyTo) !== authorizationName
  )
    return isText(bytes, entry.key) && isText(bytes, entry.value);
  found.authorization = entry.value;
  return true;
}

/** The most fields of a request; Envoy sends about thirty. */
const maxFields = 1000;

/** Calls back for each field that has a length. @returns false if the bytes are malformed, or the callback says so */
function readMessage(bytes: Buffer, from: number, to: number, read: ReadField): boolean {
  let at = from;
  for (let count = 0; at < to; count++) {
    const tag = readVarint(bytes, at, to);
    if (tag < 0 || count === maxFields) return false;
    at += tag % varintBytes;
    const wireType = (tag >>> 3) & 7;
    const number = tag >>> 6;
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
    if (length < 0) return false;
    const start = at + (length % varintBytes);
    at = start + (length >>> 3);
    if (at > to || !read(number, start, at)) return false;
  }
  return at === to;
}

/** Reads the entry of a map. @returns false for a field to read by the descriptor */
function readEntry(bytes: Buffer, [from, to]: Range, into: Record<string, string>): boolean {
  const entry = findEntry(bytes, from, to);
  if (entry === undefined || !isText(bytes, entry.key) || !isText(bytes, entry.value)) return false;
  // `__proto__` is a key like any other.
  Object.defineProperty(into, bytes.toString("utf8", ...entry.key), {
    value: bytes.toString("utf8", ...entry.value),
    enumerable: true,
    configurable: true,
    writable: true,
  });
  return true;
}

/** Finds the key and the value in the entry of a map. @returns undefined for an entry to read by the descriptor */
function findEntry(bytes: Buffer, from: number, to: number): { key: Range; value: Range } | undefined {
  let key: Range | undefined;
  let value: Range | undefined;
  const isRead = readMessage(bytes, from, to, (number, start, end) => {
    if (number === 1 && key === undefined) key = [start, end];
    else if (number === 2 && value === undefined) value = [start, end];
    else return false;
    return true;
  });
  return isRead ? { key: key ?? [to, to], value: value ?? [to, to] } : undefined;
}

/** Up to this length, a look at each byte is faster than a call out of JavaScript. */
const shortBytes = 64;

function isText(bytes: Buffer, [from, to]: Range): boolean {
  if (to - from > shortBytes) return isUtf8(bytes.subarray(from, to));
  for (let at = from; at < to; at++) if ((bytes[at] ?? 0) >= 0x80) return isUtf8(bytes.subarray(from, to));
  return true;
}

/** readVarint multiplies a value by this and adds the number of its bytes: returning an object would be slower. */
const varintBytes = 8;

/**
 * Reads a varint of up to 28 bits: tags and lengths have no more here.
 *
 * @returns the value times 8, plus the number of its bytes; -1 if it is malformed
 */
function readVarint(bytes: Buffer, from: number, to: number): number {
  let value = 0;
  for (let i = 0; i < 4 && from + i < to; i++) {
    const byte = bytes[from + i] ?? 0;
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) return value * varintBytes + i + 1;
  }
  return -1;
}
