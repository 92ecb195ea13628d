/** Byte formats: hexadecimal, base64 or PEM. */
import { toBase64 } from "../../src/client/base64.ts";
import { type Algorithm, algorithms } from "../../src/crypto/algorithms.ts";
import { encodePublicKeyDer } from "../../src/crypto/key-encoding.ts";
import { formatNumber, toHex, toHexGroups } from "./values.ts";

export type ByteFormat = "hex" | "base64" | "PEM";

/** Bytes as a reader sees and copies them. */
export interface WrittenBytes {
  /** The complete text, for other tools. */
  readonly whole: string;
  /** The part shown first, and the rest. */
  readonly start: string;
  readonly rest: string;
  /** "3,277 more bytes". */
  readonly restSize: string;
}

/** Number of bytes or characters shown first; for PEM, the first two lines. */
const startBytes = 32;
const startCharacters = 64;
const startPemCharacters = "-----BEGIN PUBLIC KEY-----\n".length + 64;

/**
 * Lists the formats in which a value can be written. A server may send a key of a wrong length, which has no
 * PEM form.
 *
 * @param publicKeyOf a public key's algorithm in the server's spelling; undefined for other values
 */
export function listFormats(value: Uint8Array, publicKeyOf: string | undefined): readonly ByteFormat[] {
  const hasPem =
    publicKeyOf !== undefined &&
    isAlgorithm(publicKeyOf) &&
    algorithms[publicKeyOf].publicKeyBytes === value.length;
  return hasPem ? ["hex", "base64", "PEM"] : ["hex", "base64"];
}

/** The preferred format, or base64, which PEM is based on, if the value has no PEM form. */
export function chooseFormat(preferred: ByteFormat, formats: readonly ByteFormat[]): ByteFormat {
  return formats.includes(preferred) ? preferred : "base64";
}

/** @param publicKeyOf required for PEM */
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
 * Encodes a public key as SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7) in PEM with lines of 64 characters
 * (RFC 7468, section 2): ML-DSA per RFC 9881, ML-KEM per RFC 9935, SLH-DSA per RFC 9909.
 *
 * @throws RangeError for an unknown algorithm or length
 */
export function writePublicKeyPem(publicKey: Uint8Array, algorithm: string): string {
  if (!isAlgorithm(algorithm)) throw new RangeError(`${algorithm} keys have no PEM form`);
  const lines = toBase64(encodePublicKeyDer(algorithm, publicKey)).match(/.{1,64}/g) ?? [];
  return ["-----BEGIN PUBLIC KEY-----", ...lines, "-----END PUBLIC KEY-----", ""].join("\n");
}

function isAlgorithm(name: string): name is Algorithm {
  return Object.hasOwn(algorithms, name);
}
