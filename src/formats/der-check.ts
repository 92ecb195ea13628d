/** Tells DER from other BER (ITU-T X.690, section 10): each length has one form. */
import { FormatError } from "./format-error.ts";

/** Bits of an identifier octet (X.690, section 8.1.2). */
const constructedBit = 0x20;
const highTagNumber = 0x1f;

/**
 * Checks that bytes are exactly one element in which every length is definite and in its shortest form, at any depth.
 *
 * @param maxDepth of elements in elements
 * @throws FormatError
 */
export function checkDer(name: string, bytes: Uint8Array, maxDepth: number): void {
  const end = checkElement(name, bytes, 0, bytes.length, maxDepth);
  if (end !== bytes.length)
    throw new FormatError(`${bytes.length - end} bytes follow ${name}; there must be none`);
}

/** @returns where the element ends */
function checkElement(
  name: string,
  bytes: Uint8Array,
  start: number,
  limit: number,
  maxDepth: number,
): number {
  if (maxDepth < 0) throw new FormatError(`${name} has too many elements in elements`);
  const tag = bytes[start] ?? 0;
  if ((tag & highTagNumber) === highTagNumber) throw new FormatError(`${name} has a tag number above 30`);
  const { contentStart, contentBytes } = readLength(name, bytes, start + 1);
  const end = contentStart + contentBytes;
  if (start + 1 >= limit || end > limit) throw new FormatError(`${name} ends inside an element`);
  if ((tag & constructedBit) === 0) return end;
  for (let at = contentStart; at < end; ) at = checkElement(name, bytes, at, end, maxDepth - 1);
  return end;
}

function readLength(
  name: string,
  bytes: Uint8Array,
  at: number,
): { contentStart: number; contentBytes: number } {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return { contentStart: at + 1, contentBytes: first };
  const lengthBytes = first & 0x7f;
  // Four bytes are more than any document here; 0x80 alone is the indefinite form.
  if (lengthBytes === 0 || lengthBytes > 4)
    throw new FormatError(
      `${name} has a length that is not DER; convert it, such as with openssl cms -cmsout -outform DER`,
    );
  let contentBytes = 0;
  for (const byte of bytes.subarray(at + 1, at + 1 + lengthBytes)) contentBytes = contentBytes * 256 + byte;
  if (contentBytes < 0x80 || contentBytes < 256 ** (lengthBytes - 1))
    throw new FormatError(`${name} has a length in more bytes than DER allows`);
  return { contentStart: at + 1 + lengthBytes, contentBytes };
}
