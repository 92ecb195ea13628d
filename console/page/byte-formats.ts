/** How bytes are written: in hexadecimal, in base64, or in PEM. */
import { toBase64 } from "../../src/client/base64.ts";
import { type Algorithm, algorithms } from "../../src/crypto/algorithms.ts";
import { encodePublicKeyDer } from "../../src/crypto/key-encoding.ts";
import { formatNumber, toHex, toHexGroups } from "./values.ts";

export type ByteFormat = "hex" | "base64" | "PEM";

/** Bytes as a reader sees and copies them. */
export interface WrittenBytes {
  /** For other programs. */
  readonly whole: string;
  /** The first part of what is shown, and what follows. */
  readonly start: string;
  readonly rest: string;
  /** "3,277 more bytes". */
  readonly restSize: string;
}

/** How many bytes or characters are shown at first; of PEM, the first two lines. */
const startBytes = 32;
const startCharacters = 64;
const startPemCharacters = "-----BEGIN PUBLIC KEY-----\n".length + 64;

/**
 * Tells in which formats a value can be written. A server may send a key of a wrong length, which has no PEM.
 *
 * @param publicKeyOf the algorithm of a public key, as the server names it; undefined for other values
 */
export function listFormats(value: Uint8Array, publicKeyOf: string | undefined): readonly ByteFormat[] {
  const hasPem =
    publicKeyOf !== undefined &&
    isAlgorithm(publicKeyOf) &&
    algorithms[publicKeyOf].publicKeyBytes === value.length;
  return hasPem ? ["hex", "base64", "PEM"] : ["hex", "base64"];
}

/** The format that a reader prefers, or base64, which is inside PEM too, for a value that has no PEM. */
export function chooseFormat(preferred: ByteFormat, formats: readonly ByteFormat[]): ByteFormat {
  return formats.includes(preferred) ? preferred : "base64";
}

/** @param publicKeyOf must be given for PEM */
export function writeBytes(value: Uint8Array, format: ByteFormat, publicKeyOf?: string): WrittenBytes {
  if (format === "hex") {
    return {
      whole: toHex(value),
      start: toHexGroups(value.subarray(0, startBytes)),
      rest: toHexGroups(value.subarray(startBytes)),
      restSize: `${formatNumber(value.length - startBytes)} more bytes`,
    };
  }
  const whole = format === "PEM" ? writePublicKeyPem(value, publicKeyOf ?? "") : toBase64(value);
  const at = format === "PEM" ? startPemCharacters : startCharacters;
  const rest = whole.slice(at).trimStart();
  return {
    whole,
    start: whole.slice(0, at),
    rest,
    restSize: `${formatNumber(rest.length)} more characters`,
  };
}

/**
 * Writes a public key as SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7) in PEM with lines of 64 characters (RFC 7468,
 * section 2): ML-DSA as RFC 9881 says, ML-KEM as RFC 9935, SLH-DSA as RFC 9909.
 *
 * @throws RangeError for an algorithm or a length that is not known
 */
export function writePublicKeyPem(publicKey: Uint8Array, algorithm: string): string {
  if (!isAlgorithm(algorithm)) throw new RangeError(`no PEM for keys of ${algorithm}`);
  const lines = toBase64(encodePublicKeyDer(algorithm, publicKey)).match(/.{1,64}/g) ?? [];
  return ["-----BEGIN PUBLIC KEY-----", ...lines, "-----END PUBLIC KEY-----", ""].join("\n");
}

function isAlgorithm(name: string): name is Algorithm {
  return Object.hasOwn(algorithms, name);
}
