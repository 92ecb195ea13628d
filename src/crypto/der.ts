/** Variable parts of the few DER documents that we read and write. */
export type SlotName = "publicKey" | "seed" | "raw";

export type SlotValues = { readonly [Name in SlotName]?: Uint8Array };

/** Placeholder in a shape for bytes of a fixed length. */
export interface Slot {
  readonly slot: SlotName;
  /** Length in bytes. */
  readonly length: number;
}

/**
 * A fixed-length DER document: constant bytes and slots, in order. Because every length is known, any
 * document without exactly this shape is rejected.
 */
export type Shape = readonly (Uint8Array | Slot)[];

/** ASN.1 tags used in our shapes (ITU-T X.690, section 8.1.2). */
export const tag = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  sequence: 0x30,
  implicitContext0: 0x80,
  implicitContext1: 0x81,
  constructedContext0: 0xa0,
  explicitContext1: 0xa1,
} as const;

/** Wraps a shape in a tag and its definite length (X.690, sections 8.1.3 and 10.1). */
export function element(tagByte: number, ...content: Shape): Shape {
  return [Uint8Array.of(tagByte, ...encodeLength(shapeLength(content))), ...content];
}

/** Encodes an object identifier in dotted form (X.690, section 8.19). */
export function objectIdentifier(dotted: string): Shape {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return element(
    tag.objectIdentifier,
    Uint8Array.from([40 * first + second, ...rest].flatMap(encodeBase128)),
  );
}

/** Fills the slots of a shape. The caller wipes the result if a slot is secret. */
export function renderShape(shape: Shape, values: SlotValues): Uint8Array {
  const document = new Uint8Array(shapeLength(shape));
  let offset = 0;
  for (const part of shape) {
    const bytes = part instanceof Uint8Array ? part : values[part.slot];
    if (bytes?.length !== part.length) throw new RangeError(`a DER part must have ${part.length} bytes`);
    document.set(bytes, offset);
    offset += part.length;
  }
  return document;
}

/**
 * Reads the slots of a document.
 *
 * @returns views into the document, or undefined if it differs from the shape in length or in any constant
 *   byte
 */
export function matchShape(shape: Shape, document: Uint8Array): SlotValues | undefined {
  if (document.length !== shapeLength(shape)) return undefined;
  const values: Partial<Record<SlotName, Uint8Array>> = {};
  let offset = 0;
  for (const part of shape) {
    const bytes = document.subarray(offset, offset + part.length);
    if (!(part instanceof Uint8Array)) values[part.slot] = bytes;
    else if (!part.every((byte, i) => byte === bytes[i])) return undefined;
    offset += part.length;
  }
  return values;
}

/** One element in a document, with its start and end offsets. */
export interface DerElement {
  readonly tag: number;
  /** View into the document. */
  readonly content: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/**
 * Reads the elements of a SEQUENCE.
 *
 * @param document accepted by `requireDer`, or written by OpenSSL
 */
export function readChildren(document: Uint8Array): DerElement[] {
  const { content, end } = readElement(document, 0);
  const children: DerElement[] = [];
  for (let at = end - content.length; at < end; at = children.at(-1)?.end ?? end)
    children.push(readElement(document, at));
  return children;
}

function readElement(document: Uint8Array, start: number): DerElement {
  const [tagByte = 0, first = 0] = document.subarray(start);
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  const contentAt = start + 2 + lengthBytes;
  const length =
    lengthBytes === 0
      ? first
      : document.subarray(start + 2, contentAt).reduce((sum, byte) => sum * 256 + byte, 0);
  const end = contentAt + length;
  return { tag: tagByte, content: document.subarray(contentAt, end), start, end };
}

function shapeLength(shape: Shape): number {
  return shape.reduce((length, part) => length + part.length, 0);
}

function encodeLength(length: number): number[] {
  if (length < 0x80) return [length];
  if (length < 0x100) return [0x81, length];
  return [0x82, length >> 8, length & 0xff];
}

function encodeBase128(arc: number): number[] {
  const digits = [arc & 0x7f];
  for (let rest = arc >> 7; rest > 0; rest >>= 7) digits.unshift(0x80 | (rest & 0x7f));
  return digits;
}
