/** The one reader of PEM (RFC 7468): keys, certificates, requests and CMS. */
import { wipe } from "./bytes.ts";
import { type CryptoError, invalidArgument, invalidKey } from "./crypto-error.ts";

/** The longest PEM text of a key, in characters; an ML-DSA-87 key in both forms has 6,774. */
export const maxPemCharacters = 16_384;

/** One block of a text. */
export interface PemBlock {
  /** The text between BEGIN and the dashes. */
  readonly label: string;
  /** The line of its BEGIN, from 1. */
  readonly line: number;
  /** The lines between BEGIN and END. */
  readonly body: readonly string[];
}

/** The labels of a certificate; the second is an older one (RFC 7468, section 5.1). */
const certificateLabels = ["CERTIFICATE", "X509 CERTIFICATE"];

const boundaryPattern = /^-----(BEGIN|END) ([ -,.-~]{1,64})-----[ \t]*$/;
/** A line that was meant as a boundary. Skipping it would skip its block. */
const brokenBoundaryPattern = /---\s?(BEGIN|END)\b/i;

/** Writes DER as PEM with lines of 64 characters (RFC 7468, section 2). */
export function encodePem(label: string, der: Uint8Array): string {
  const lines = der.toBase64().match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/**
 * Tells whether a file is PEM: text with a BEGIN line, also in UTF-16, which `findPemBlocks` refuses by name. DER that
 * contains PEM, such as CMS with its content, is not: it begins with bytes that no text has.
 */
export function isPem(file: Uint8Array): boolean {
  const begin = [beginMarker, utf16Dashes].map((marker) => findBytes(file, marker)).find((at) => at >= 0);
  return begin !== undefined && !file.subarray(0, begin).some((byte) => byte > 0 && byte < tab);
}

const tab = 9;
const dash = 0x2d;
const beginMarker = new TextEncoder().encode("-----BEGIN");
const utf16Dashes = Uint8Array.of(dash, 0, dash, 0, dash, 0, dash, 0, dash);

/** @param marker begins with a dash. @returns -1 if it does not occur */
function findBytes(file: Uint8Array, marker: Uint8Array): number {
  let at = file.indexOf(dash);
  while (at >= 0 && !marker.every((byte, i) => file[at + i] === byte)) at = file.indexOf(dash, at + 1);
  return at;
}

/**
 * Finds all blocks of a text (RFC 7468, section 3). Text outside of blocks is ignored, and so are a byte order mark and
 * white space at the end of lines, which end in LF, CR LF or CR. Every BEGIN line yields a block or an error, so that
 * nobody takes the second block for the first.
 *
 * @param maxCharacters the longest accepted text.
 * @throws INVALID_KEY, which names the line; INVALID_ARGUMENT for a value that is not a string
 */
export function findPemBlocks(pem: string, maxCharacters = maxPemCharacters): PemBlock[] {
  if (typeof pem !== "string") throw invalidArgument(`PEM must be a string, not ${typeof pem}`);
  if (pem.length > maxCharacters)
    throw invalidKey(`PEM of ${pem.length} characters; the limit is ${maxCharacters}`);
  if (pem.includes("-\0-\0-")) throw invalidKey("the text is in UTF-16; save it as UTF-8");
  const blocks: PemBlock[] = [];
  let open: (PemBlock & { readonly body: string[] }) | undefined;
  for (const [i, text] of pem
    .replace(/^\uFEFF/, "")
    .split(/\r\n?|\n/)
    .entries()) {
    const line = i + 1;
    const [, kind, label = ""] = boundaryPattern.exec(text) ?? [];
    if (kind === undefined) {
      if (brokenBoundaryPattern.test(text))
        throw invalidKey(`line ${line} is not a whole BEGIN or END line, such as -----BEGIN PUBLIC KEY-----`);
      open?.body.push(text.trimEnd());
    } else if (kind === "BEGIN") {
      if (open !== undefined) throw withoutEnd(open);
      open = { label, line, body: [] };
    } else {
      if (open === undefined) throw invalidKey(`line ${line} ends a ${label} that no line begins`);
      if (open.label !== label) throw invalidKey(`the ${open.label} in line ${open.line} ends as a ${label}`);
      blocks.push(open);
      open = undefined;
    }
  }
  if (open !== undefined) throw withoutEnd(open);
  return blocks;
}

/** Decodes a block. @returns DER; the caller wipes it when it is secret. @throws INVALID_KEY */
export function decodePemBlock({ label, line, body }: PemBlock): Uint8Array {
  if (label.includes("ENCRYPTED") || body.some((text) => /:.*ENCRYPTED/.test(text)))
    throw invalidKey(
      `the ${label} in line ${line} is encrypted; decrypt it first, such as with openssl pkey -in FILE -out NEW`,
    );
  if (body.some((text) => text.includes(":")))
    throw invalidKey(`the ${label} in line ${line} has headers, which RFC 7468 does not allow`);
  const base64 = body.join("");
  if (base64 === "") throw invalidKey(`the ${label} in line ${line} is empty`);
  try {
    if (!/^[A-Za-z0-9+/=]+$/.test(base64)) throw new SyntaxError();
    // "strict": padding is required and unused bits must be zero.
    return Uint8Array.fromBase64(base64, { lastChunkHandling: "strict" });
  } catch {
    throw invalidKey(`the ${label} in line ${line} is not valid base64`);
  }
}

/**
 * Reads a text with exactly one block.
 *
 * @param labels the text that must be between BEGIN and the dashes, or several that mean the same.
 * @param maxCharacters the longest accepted text.
 * @returns DER; the caller wipes it when it is secret.
 * @throws INVALID_KEY, which says what the text has instead; INVALID_ARGUMENT for a value that is not a string
 */
export function decodePem(
  labels: string | readonly [string, ...string[]],
  pem: string,
  maxCharacters = maxPemCharacters,
): Uint8Array {
  const accepted = typeof labels === "string" ? [labels] : labels;
  const blocks = findPemBlocks(pem, maxCharacters);
  const [block, another] = blocks;
  if (block === undefined)
    throw invalidKey(`no PEM block; expected -----BEGIN ${accepted[0]}----- and its END line`);
  if (another !== undefined) throw invalidKey(`${describePemBlocks(blocks)}; expected one ${accepted[0]}`);
  const der = decodePemBlock(block);
  if (accepted.includes(block.label)) return der;
  wipe(der);
  throw invalidKey(`the PEM block is a ${block.label}; expected a ${accepted[0]}`);
}

/** Finds the certificates among the blocks of a text, in their order. @throws INVALID_KEY */
export function findCertificateBlocks(pem: string, maxCharacters: number): PemBlock[] {
  const blocks = findPemBlocks(pem, maxCharacters);
  const trusted = blocks.find(({ label }) => label === "TRUSTED CERTIFICATE");
  if (trusted !== undefined)
    throw invalidKey(
      `the certificate in line ${trusted.line} has settings of OpenSSL in it; convert it with openssl x509 -in FILE -out NEW`,
    );
  return blocks.filter(({ label }) => certificateLabels.includes(label));
}

/** Names blocks in an error, such as "2 PEM blocks (PUBLIC KEY in line 1, CERTIFICATE in line 9)". */
export function describePemBlocks(blocks: readonly PemBlock[]): string {
  const named = blocks.slice(0, 5).map(({ label, line }) => `${label} in line ${line}`);
  return `${blocks.length} PEM block${blocks.length === 1 ? "" : "s"} (${named.join(", ")}${blocks.length > 5 ? ", …" : ""})`;
}

function withoutEnd({ label, line }: PemBlock): CryptoError {
  return invalidKey(`the ${label} in line ${line} has no END line`);
}
