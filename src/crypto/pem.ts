/** The only PEM parser (RFC 7468), for keys, certificates, CSRs and CMS. */
import { wipe } from "./bytes.ts";
import { type CryptoError, invalidArgument, invalidKey } from "./crypto-error.ts";

/** Maximum length of a key's PEM text, in characters; an ML-DSA-87 key in both forms has 6,774. */
export const maxPemCharacters = 16_384;

/** One block of a PEM text. */
export interface PemBlock {
  /** Text between BEGIN and the dashes. */
  readonly label: string;
  /** Line number of BEGIN, starting at 1. */
  readonly line: number;
  /** Lines between BEGIN and END. */
  readonly body: readonly string[];
}

/** Labels of a certificate; the second is obsolete (RFC 7468, section 5.1). */
const certificateLabels = ["CERTIFICATE", "X509 CERTIFICATE"];

const boundaryPattern = /^-----(BEGIN|END) ([ -,.-~]{1,64})-----[ \t]*$/;
/** A line meant as a boundary. Skipping it would skip its block. */
const brokenBoundaryPattern = /---\s?(BEGIN|END)\b/i;

/** Encodes DER as PEM with 64-character lines (RFC 7468, section 2). */
export function encodePem(label: string, der: Uint8Array): string {
  const lines = der.toBase64().match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/**
 * Returns whether a file is PEM: text with a BEGIN line, including UTF-16, which `findPemBlocks` rejects with
 * its own message. DER that contains PEM, such as CMS with its content, is not: it starts with bytes that do
 * not occur in text.
 */
export function isPem(file: Uint8Array): boolean {
  const begin = [beginMarker, utf16Dashes].map((marker) => findBytes(file, marker)).find((at) => at >= 0);
  return begin !== undefined && !file.subarray(0, begin).some((byte) => byte > 0 && byte < tab);
}

const tab = 9;
const dash = 0x2d;
const beginMarker = new TextEncoder().encode("-----BEGIN");
const utf16Dashes = Uint8Array.of(dash, 0, dash, 0, dash, 0, dash, 0, dash);

/**
 * @param marker starts with a dash
 * @returns -1 if the marker does not occur
 */
function findBytes(file: Uint8Array, marker: Uint8Array): number {
  let at = file.indexOf(dash);
  while (at >= 0 && !marker.every((byte, i) => file[at + i] === byte)) at = file.indexOf(dash, at + 1);
  return at;
}

/**
 * Finds all blocks of a text (RFC 7468, section 3). Ignores text outside blocks, a byte order mark and
 * trailing white space. Lines may end in LF, CR LF or CR. Every BEGIN line yields a block or an error, so
 * that a caller never mistakes the second block for the first.
 *
 * @param maxCharacters maximum length of the text
 * @throws INVALID_KEY, naming the line; INVALID_ARGUMENT if the value is not a string
 */
export function findPemBlocks(pem: string, maxCharacters = maxPemCharacters): PemBlock[] {
  if (typeof pem !== "string") throw invalidArgument(`PEM must be a string, not ${typeof pem}`);
  if (pem.length > maxCharacters)
    throw invalidKey(`the PEM text has ${pem.length} characters; the limit is ${maxCharacters}`);
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
      if (open === undefined) throw invalidKey(`line ${line} ends a ${label} block that never began`);
      if (open.label !== label)
        throw invalidKey(`the ${open.label} in line ${open.line} ends with END ${label}`);
      blocks.push(open);
      open = undefined;
    }
  }
  if (open !== undefined) throw withoutEnd(open);
  return blocks;
}

/**
 * Decodes a block.
 *
 * @returns DER; the caller wipes it if it is secret
 * @throws INVALID_KEY
 */
export function decodePemBlock({ label, line, body }: PemBlock): Uint8Array {
  if (label.includes("ENCRYPTED") || body.some((text) => /:.*ENCRYPTED/.test(text)))
    throw invalidKey(
      `the ${label} in line ${line} is encrypted; decrypt it first, for example with openssl pkey -in FILE -out NEW`,
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
 * Decodes a text with exactly one block.
 *
 * @param labels the accepted label, or several equivalent ones
 * @param maxCharacters maximum length of the text
 * @returns DER; the caller wipes it if it is secret
 * @throws INVALID_KEY, describing what the text contains; INVALID_ARGUMENT if the value is not a string
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
  throw invalidKey(`the PEM block is labelled ${block.label}; expected ${accepted[0]}`);
}

/**
 * Finds the certificate blocks of a text, in order.
 *
 * @throws INVALID_KEY
 */
export function findCertificateBlocks(pem: string, maxCharacters: number): PemBlock[] {
  const blocks = findPemBlocks(pem, maxCharacters);
  const trusted = blocks.find(({ label }) => label === "TRUSTED CERTIFICATE");
  if (trusted !== undefined)
    throw invalidKey(
      `the certificate in line ${trusted.line} contains OpenSSL trust settings; convert it with openssl x509 -in FILE -out NEW`,
    );
  return blocks.filter(({ label }) => certificateLabels.includes(label));
}

/** Describes blocks in an error, for example "2 PEM blocks (PUBLIC KEY in line 1, CERTIFICATE in line 9)". */
export function describePemBlocks(blocks: readonly PemBlock[]): string {
  const named = blocks.slice(0, 5).map(({ label, line }) => `${label} in line ${line}`);
  return `${blocks.length} PEM block${blocks.length === 1 ? "" : "s"} (${named.join(", ")}${blocks.length > 5 ? ", …" : ""})`;
}

function withoutEnd({ label, line }: PemBlock): CryptoError {
  return invalidKey(`the ${label} in line ${line} has no END line`);
}
