/** Signed notes (c2sp.org/signed-note): a text, an empty line, and lines with signatures. */

/** A signature of a note, by the name and the ID of its key. */
export interface NoteSignature {
  readonly keyName: string;
  /** 32 bits. */
  readonly keyId: number;
  /** Without the ID. */
  readonly signature: Uint8Array;
}

/** A note whose signatures are not verified yet. */
export interface Note {
  /** Ends with a newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** The most bytes of a note: a checkpoint with 32 post-quantum signatures of 4.5 kB each in base64. */
export const maxNoteBytes = 192 * 1024;
/** The most signatures of a note; the specification asks for at least 16. */
const maxNoteSignatures = 32;
/** The most bytes of a signature line; ML-DSA-87 has 6.2 kB in base64. */
const maxLineBytes = 16 * 1024;

/** Tells what is wrong with a note, a key or a checkpoint. The message completes "the note …". */
export class NoteError extends Error {
  override readonly name = "NoteError";
}

/** Tells whether a text may name a key: not empty, no space of Unicode, no control character, and no plus. */
export function isKeyName(text: string): boolean {
  // A cosigner signs the length of its name in one byte.
  const isShort = Buffer.byteLength(text) <= 255;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a name must not have.
  return text !== "" && isShort && text.isWellFormed() && !/[\s\u0085+\u0000-\u001f\u007f]/u.test(text);
}

/** Writes the line of a signature, with its newline. */
export function formatSignatureLine({ keyName, keyId, signature }: NoteSignature): string {
  const id = Buffer.alloc(4);
  id.writeUInt32BE(keyId);
  return `— ${keyName} ${Buffer.concat([id, signature]).toString("base64")}\n`;
}

/** Writes a note. @param text ends with a newline */
export function formatNote({ text, signatures }: Note): string {
  return `${text}\n${signatures.map(formatSignatureLine).join("")}`;
}

/**
 * Reads a note, and verifies nothing.
 *
 * @throws NoteError
 */
export function parseNote(bytes: Uint8Array): Note {
  if (bytes.length > maxNoteBytes) throw new NoteError(`has more than ${maxNoteBytes} bytes`);
  const whole = decodeText(bytes);
  const end = whole.lastIndexOf("\n\n");
  if (end < 0) throw new NoteError("has no empty line between its text and its signatures");
  const lines = whole.slice(end + 2).split("\n");
  if (lines.pop() !== "" || lines.length === 0)
    throw new NoteError("does not end with the line of a signature");
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
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note must not have them.
  if (/[\u0000-\u0009\u000b-\u001f]/.test(text)) throw new NoteError("has a control character");
  return text;
}

function parseLine(line: string): NoteSignature {
  const match = /^— (\S+) ([A-Za-z0-9+/]+={0,2})$/u.exec(line.length > maxLineBytes ? "" : line);
  const [, keyName = "", base64 = ""] = match ?? [];
  const bytes = Buffer.from(base64, "base64");
  // The one base64 of the bytes, so that a signature has one form.
  if (!isKeyName(keyName) || bytes.length < 5 || bytes.toString("base64") !== base64)
    throw new NoteError("has a line after its text that is not a signature: — <key name> <base64>");
  return { keyName, keyId: bytes.readUInt32BE(), signature: Uint8Array.from(bytes.subarray(4)) };
}
