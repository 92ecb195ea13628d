/**
 * A byte string as a tree of named fields. The leaves cover every byte, in order, even if the bytes break the
 * format: a field that breaks it says how, and reading goes on with what is left.
 */

/** What a field's bytes are for, as the pictures colour them. */
export type Kind = "framing" | "mlkem" | "ecdh" | "publicKey" | "signature" | "proof" | "data";

export interface Field {
  /** As in the standard: "legacy_version". */
  readonly name: string;
  /** Offset of the first byte. */
  readonly start: number;
  /** Offset after the last byte. */
  readonly end: number;
  /** The content in words: "0x11ec, X25519MLKEM768". */
  readonly value?: string | undefined;
  readonly kind?: Kind | undefined;
  /** How the bytes break the format. */
  readonly problem?: string | undefined;
  readonly parts: readonly Field[];
}

/** Optional properties of a field. */
type Details<T> = Pick<Field, "kind"> & { readonly show?: (content: T) => string | undefined };

/** Reads fields one after the other. Never throws: missing bytes read as zero and leave a problem. */
export class FieldReader {
  readonly parts: Field[] = [];
  readonly bytes: Uint8Array;
  readonly end: number;
  at: number;
  /** A problem that no part has. */
  problem: string | undefined;

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  get left(): number {
    return this.end - this.at;
  }

  /** Reads a big-endian number of 1 to 4 bytes (RFC 8446, section 3.3). */
  number(name: string, size: number, { show, kind = "framing" }: Details<number> = {}): number {
    const content = this.take(name, size, {
      kind,
      show: (bytes) => (show ?? String)(toNumber(bytes)),
    });
    return toNumber(content);
  }

  /** Reads bytes without inner structure. None leave no field. */
  take(name: string, size: number, { show, kind }: Details<Uint8Array> = {}): Uint8Array {
    const start = this.at;
    this.at = Math.min(this.end, start + size);
    const content = this.bytes.subarray(start, this.at);
    const missing = size - content.length;
    const problem = missing > 0 ? `${missing} of ${size} bytes are missing` : undefined;
    if (content.length > 0)
      this.parts.push({ name, start, end: this.at, value: show?.(content), kind, problem, parts: [] });
    else if (problem !== undefined) this.blame(`${name} is missing`);
    return content;
  }

  /**
   * Reads a field with parts. Bytes that `read` leaves become a part with a problem.
   *
   * @param read may return the value of the field, a text
   */
  group(name: string, size: number, read: (inner: FieldReader) => unknown): void {
    const start = this.at;
    this.at = Math.min(this.end, start + size);
    const inner = new FieldReader(this.bytes, start, this.at);
    const content = read(inner);
    const value = typeof content === "string" ? content : undefined;
    const extra = inner.left;
    if (extra > 0) {
      inner.take("unexpected bytes", extra);
      inner.blame(`${name} should end before its last ${extra} bytes`);
    }
    const problem =
      start + size > this.end
        ? `${name} claims ${size} bytes, and ${this.end - start} are left`
        : inner.problem;
    if (this.at > start) this.parts.push({ name, start, end: this.at, value, problem, parts: inner.parts });
    else if (problem !== undefined) this.blame(problem);
  }

  /** Reads a vector (RFC 8446, section 3.4): its length in `lengthSize` bytes, then its content. */
  vector(name: string, lengthSize: number, read: (inner: FieldReader) => unknown): void {
    let length = 0;
    for (let at = 0; at < lengthSize; at += 1) length = length * 256 + (this.bytes[this.at + at] ?? 0);
    this.group(name, lengthSize + length, (inner) => {
      inner.number("length", lengthSize);
      return read(inner);
    });
  }

  /** Reads a vector of bytes without inner structure. */
  opaque(name: string, lengthSize: number, details?: Details<Uint8Array>): Uint8Array {
    let contents: Uint8Array = new Uint8Array();
    this.vector(name, lengthSize, (inner) => {
      contents = inner.rest("contents", details);
      return contents.length > 0 ? details?.show?.(contents) : undefined;
    });
    return contents;
  }

  /** Reads a vector of equal items until the vector ends. */
  list(name: string, lengthSize: number, readItem: (inner: FieldReader) => void): void {
    this.vector(name, lengthSize, (inner) => {
      while (inner.left > 0) readItem(inner);
    });
  }

  /** Reads all remaining bytes. */
  rest(name: string, details?: Details<Uint8Array>): Uint8Array {
    return this.take(name, this.left, details);
  }

  /** Adds a problem to the last field. */
  blame(problem: string): void {
    const last = this.parts.pop();
    if (last === undefined) this.problem ??= problem;
    else this.parts.push({ ...last, problem: last.problem ?? problem });
  }
}

export function toNumber(bytes: Uint8Array): number {
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
}

/** Cuts fields from one offset to another, and shifts them: a message may continue in the next record. */
export function cutFields(fields: readonly Field[], from: number, to: number, shift: number): Field[] {
  return fields.flatMap((field) => {
    const [start, end] = [Math.max(field.start, from), Math.min(field.end, to)];
    if (start >= end) return [];
    const parts = cutFields(field.parts, from, to, shift);
    return [{ ...field, start: start + shift, end: end + shift, parts }];
  });
}

/** The fields without parts, in order. */
export function listLeaves(field: Field): Field[] {
  return field.parts.length === 0 ? [field] : field.parts.flatMap(listLeaves);
}

/** The fields that contain a byte, from the outermost to the leaf. */
export function findPath(field: Field, at: number): Field[] {
  const part = field.parts.find(({ start, end }) => at >= start && at < end);
  return part === undefined ? [field] : [field, ...findPath(part, at)];
}

/** The first problem in a field or its parts. */
export function findProblem(field: Field): string | undefined {
  if (field.problem !== undefined) return field.problem;
  for (const part of field.parts) {
    const problem = findProblem(part);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
