/**
 * Rejects encodings that asn1js accepts but DER (ITU-T X.690, section 10) forbids, when parsing untrusted
 * input.
 */
import { type CryptoError, invalidArgument } from "./crypto-error.ts";

/** Maximum nesting: a CSR has seven levels, a CMS message with certificates about seventeen. */
const maxDepth = 32;
const maxElements = 10_000;
/** Maximum bytes of an object identifier. asn1js takes 700 bytes of memory for each of its numbers. */
const maxIdentifierBytes = 64;

/**
 * Checks that a document is exactly one DER element: definite lengths in their shortest form, primitive
 * strings, and no trailing bytes. Does not check the order of a SET OF.
 *
 * @param what the document's name for error messages, such as "the request"
 * @throws INVALID_ARGUMENT
 */
export function requireDer(what: string, document: Uint8Array): void {
  let elements = 0;
  const fail = (problem: string): CryptoError => invalidArgument(`${what} is not strict DER: ${problem}`);

  /** @returns the offset after the element */
  const checkElement = (start: number, end: number, depth: number): number => {
    elements += 1;
    if (elements > maxElements || depth > maxDepth)
      throw fail("it has too many or too deeply nested elements");
    const identifier = document[start];
    if (identifier === undefined || start >= end) throw fail("it ends too early");
    if ((identifier & 0x1f) === 0x1f) throw fail("a tag above 30");
    const { contentAt, length } = readLength(start + 1);
    const after = contentAt + length;
    if (after > end) throw fail("an element is longer than the element around it");
    const isConstructed = (identifier & 0x20) !== 0;
    if (isConstructed) {
      for (let at = contentAt; at < after; ) at = checkElement(at, after, depth + 1);
    }
    const problem = findProblem(identifier, document.subarray(contentAt, after));
    if (problem !== undefined) throw fail(problem);
    return after;
  };

  const readLength = (at: number): { contentAt: number; length: number } => {
    const first = document[at];
    if (first === undefined) throw fail("it ends too early");
    if (first < 0x80) return { contentAt: at + 1, length: first };
    const count = first & 0x7f;
    const bytes = document.subarray(at + 1, at + 1 + count);
    if (count < 1 || count > 3 || bytes.length !== count)
      throw fail("a length that is indefinite or too large");
    const length = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
    if (bytes[0] === 0 || length < 0x80) throw fail("a length that is not in its shortest form");
    return { contentAt: at + 1 + count, length };
  };

  const end = checkElement(0, document.length, 1);
  if (end !== document.length) throw fail(`${document.length - end} bytes follow it`);
}

/** Universal types whose content DER restricts, and the two constructed types. */
const universal = {
  boolean: 1,
  integer: 2,
  bitString: 3,
  objectIdentifier: 6,
  sequence: 16,
  set: 17,
} as const;

function findProblem(identifier: number, content: Uint8Array): string | undefined {
  if ((identifier & 0xc0) !== 0) return undefined;
  const type = identifier & 0x1f;
  const isConstructed = (identifier & 0x20) !== 0;
  if (isConstructed !== (type === universal.sequence || type === universal.set))
    return "a string in several parts";
  const [first = 0, second = 0] = content;
  if (type === universal.boolean && (content.length !== 1 || (first !== 0 && first !== 0xff)))
    return "a BOOLEAN that is neither 00 nor FF";
  if (type === universal.integer) {
    const isPadded =
      content.length > 1 && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80));
    if (content.length === 0 || isPadded) return "an INTEGER that is not in its shortest form";
  }
  if (type === universal.bitString) {
    const unused = (content.at(-1) ?? 0) & ((1 << Math.min(first, 8)) - 1);
    if (
      content.length === 0 ||
      first > 7 ||
      (content.length === 1 && first !== 0) ||
      (content.length > 1 && unused !== 0)
    )
      return "a BIT STRING with stray bits";
  }
  if (type === universal.objectIdentifier) {
    const isPadded = content.some((byte, i) => byte === 0x80 && (content[i - 1] ?? 0) < 0x80);
    if (content.length > maxIdentifierBytes)
      return `an OBJECT IDENTIFIER of ${content.length} bytes; the limit is ${maxIdentifierBytes}`;
    if (content.length === 0 || (content.at(-1) ?? 0) >= 0x80 || isPadded)
      return "an OBJECT IDENTIFIER that is not in its shortest form";
  }
  return undefined;
}
