import { CryptoError } from "./crypto-error.ts";

/** The longest PEM text of a key, in characters; an ML-DSA-87 key in both forms has 6,774. */
export const maxPemCharacters = 16_384;

const pemPattern =
  /^\s*-----BEGIN ([A-Z0-9 ]{1,40})-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END ([A-Z0-9 ]{1,40})-----\s*$/;

/** Writes DER as PEM with lines of 64 characters (RFC 7468, section 2). */
export function encodePem(label: string, der: Uint8Array): string {
  const lines = der.toBase64().match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/**
 * Reads one PEM block (RFC 7468, section 3): only white space before and after it, lines of any
 * length that end in LF or CR LF, base64 with its padding and without stray bits.
 *
 * @param label the text that must be between BEGIN and the dashes.
 * @param maxCharacters the longest accepted text.
 * @returns DER; the caller wipes it when it is secret.
 * @throws INVALID_KEY; INVALID_ARGUMENT for a value that is not a string
 */
export function decodePem(label: string, pem: string, maxCharacters = maxPemCharacters): Uint8Array {
  if (typeof pem !== "string")
    throw new CryptoError("INVALID_ARGUMENT", `PEM must be a string, not ${typeof pem}`);
  if (pem.length > maxCharacters) {
    throw new CryptoError("INVALID_KEY", `PEM of ${pem.length} characters; the limit is ${maxCharacters}`);
  }
  const [, begin, body = "", end] = pemPattern.exec(pem) ?? [];
  if (begin === undefined || begin !== end) {
    throw new CryptoError(
      "INVALID_KEY",
      `not one PEM block; expected -----BEGIN ${label}----- and its END line`,
    );
  }
  if (begin !== label) {
    throw new CryptoError("INVALID_KEY", `the PEM block is a ${begin}; expected a ${label}`);
  }
  return decodeBase64(body.replaceAll(/[\r\n]/g, ""));
}

function decodeBase64(text: string): Uint8Array {
  try {
    // "strict": padding is required and unused bits must be zero.
    return Uint8Array.fromBase64(text, { lastChunkHandling: "strict" });
  } catch {
    throw new CryptoError("INVALID_KEY", "the PEM block is not valid base64");
  }
}
