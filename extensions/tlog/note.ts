/** Signed notes (c2sp.org/signed-note): a text, an empty line, and signature lines. */

/** A signature in a note, identified by key name and key ID. */
export interface NoteSignature {
  readonly keyName: string;
  /** 32 bits. */
  readonly keyId: number;
  /** Without the key ID. */
  readonly signature: Uint8Array;
}

/** A note whose signatures have not been verified. */
export interface Note {
  /** Ends with a newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** Maximum note size in bytes: a checkpoint with 32 post-quantum signatures of 4.5 kB each in base64. */
export const maxNoteBytes = 192 * 1024;
/** Maximum signatures per note; the specification requires support for at least 16. */
const maxNoteSignatures = 32;
/** Maximum signature line length in bytes; ML-DSA-87 takes 6.2 kB in base64. */
const maxLineBytes = 16 * 1024;

/** A malformed note, key or checkpoint. The message completes "the note …". */
export class NoteError extends Error {
  override readonly name = "NoteError";
}

/** Whether a text is a valid key name: not empty, no Unicode space, no control character, and no plus. */
export function isKeyName(text: string): boolean {
  // A cosigner signs the length of its name in one byte.
  const isShort = Buffer.byteLength(text) <= 255;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a name must not contain them.
  return text !== "" && isShort && text.isWellFormed() && !/[\s\u0085+\u0000-\u001f\u007f]/u.test(text);
}

/** Formats a signature line, including its newline. */
export function formatSignatureLine({ keyName, keyId, signature }: NoteSignature): string {
  const id = Buffer.alloc(4);
  id.writeUInt32BE(keyId);
  return `— ${keyName} ${Buffer.concat([id, signature]).toString("base64")}\n`;
}

/**
 * Formats a note.
 *
 * @param text ends with a newline
 */
export function formatNote({ text, signatures }: Note): string {
  return `${text}\n${signatures.map(formatSignatureLine).join("")}`;
}

/**
 * Parses a note without verifying it.
 *
 * @throws NoteError
 */
export function parseNote(bytes: Uint8Array): Note {
  if (bytes.length > maxNoteBytes) throw new NoteError(`has more than ${maxNoteBytes} bytes`);
  const whole = decodeText(bytes);
  const end = whole.lastIndexOf("\n\n");
  if (end < 0) throw new NoteError("has no empty line between its text and its signatures");
  const lines = whole.slice(end + 2).split("\n");
  if (lines.pop() !== "" || lines.length === 0) throw new NoteError("does not end with a signature line");
  if (lines.length > maxNoteSignatures)
    throw new NoteError(`has ${lines.length} signatures; the limit is ${maxNoteSignatures}`);
  return { text: whole.slice(0, end + 1), signatures: lines.map(parseLine) };
}

function decodeText(bytes: Uint8Array): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new NoteError("is not UTF-8");
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note must not contain them.
  if (/[\u0000-\u0009\u000b-\u001f]/.test(text)) throw new NoteError("has a control character");
  return text;
}

function parseLine(line: string): NoteSignature {
  const match = /^— (\S+) ([A-Za-z0-9+/]+={0,2})$/u.exec(line.length > maxLineBytes ? "" : line);
  const [, keyName = "", base64 = ""] = match ?? [];
  const bytes = Buffer.from(base64, "base64");
  // Accept only canonical base64, so that a signature has one form.
  if (!isKeyName(keyName) || bytes.length < 5 || bytes.toString("base64") !== base64)
    throw new NoteError("has a malformed signature line; expected — <key name> <base64>");
  return { keyName, keyId: bytes.readUInt32BE(), signature: Uint8Array.from(bytes.subarray(4)) };
}
