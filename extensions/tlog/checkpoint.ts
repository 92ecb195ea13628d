/** Checkpoint text (c2sp.org/tlog-checkpoint): the log, its number of leaves, and their root. */
import { isKeyName, NoteError } from "./note.ts";

/** The head of a tree. */
export interface Checkpoint {
  /** The log's name: the first line. */
  readonly origin: string;
  /** Number of leaves. */
  readonly size: number;
  /** 32 bytes (RFC 6962, section 2.1). */
  readonly root: Uint8Array;
}

/** Formats a checkpoint: three lines, no extensions. */
export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${Buffer.from(root).toString("base64")}\n`;
}

/**
 * Parses a checkpoint. Lines after the third are extensions, which a note's text may have.
 *
 * @throws NoteError
 */
export function parseCheckpoint(text: string): Checkpoint & { readonly extensions: readonly string[] } {
  const lines = text.split("\n");
  if (lines.pop() !== "" || lines.length < 3 || lines.some((line) => line === ""))
    throw new NoteError("is not a checkpoint: expected an origin, a size and a root, one per line");
  const [origin = "", size = "", root = "", ...extensions] = lines;
  // The spec allows spaces in an origin, but our logs have none, and cosigners sign its length in one byte.
  if (!isKeyName(origin))
    throw new NoteError("is not a checkpoint: the origin has a space or a plus, or is too long");
  if (!/^(0|[1-9]\d{0,15})$/.test(size) || !Number.isSafeInteger(Number(size)))
    throw new NoteError("is not a checkpoint: the size is not a whole number without leading zeros");
  const bytes = Buffer.from(root, "base64");
  if (bytes.length !== 32 || bytes.toString("base64") !== root)
    throw new NoteError("is not a checkpoint: the root is not 32 bytes in base64");
  return { origin, size: Number(size), root: Uint8Array.from(bytes), extensions };
}
