/**
 * Proofs as text, for verification without a server: inclusion proofs (c2sp.org/tlog-proof), and consistency
 * proofs in the form that witnesses receive (c2sp.org/tlog-witness, add-checkpoint). Both end with the
 * checkpoint.
 */
import { NoteError } from "./note.ts";

/** A proof that a leaf is in a checkpoint's tree. */
export interface InclusionFile {
  readonly kind: "inclusion";
  /** Leaf index from 0. */
  readonly index: number;
  readonly hashes: readonly Uint8Array[];
  /** A signed note. */
  readonly checkpoint: string;
}

/** A proof that a checkpoint's tree starts with a smaller tree. */
export interface ConsistencyFile {
  readonly kind: "consistency";
  /** Number of leaves in the smaller tree. */
  readonly from: number;
  readonly hashes: readonly Uint8Array[];
  /** A signed note. */
  readonly checkpoint: string;
}

const firstLine = "c2sp.org/tlog-proof@v1";
/** Maximum hashes, more than any proof needs for a tree of up to 2^63 leaves. */
const maxHashes = 63;

/** Formats a proof. */
export function formatProofFile(proof: InclusionFile | ConsistencyFile): string {
  const head = proof.kind === "inclusion" ? `${firstLine}\nindex ${proof.index}` : `old ${proof.from}`;
  const lines = proof.hashes.map((hash) => Buffer.from(hash).toString("base64"));
  return `${[head, ...lines].join("\n")}\n\n${proof.checkpoint}`;
}

/**
 * Parses a proof without verifying it.
 *
 * @returns undefined for a text that does not start like a proof
 * @throws NoteError
 */
export function parseProofFile(text: string): InclusionFile | ConsistencyFile | undefined {
  const isInclusion = text.startsWith(`${firstLine}\n`);
  if (!isInclusion && !text.startsWith("old ")) return undefined;
  const end = text.indexOf("\n\n");
  if (end < 0) throw new NoteError("has no empty line between the proof and the checkpoint");
  const checkpoint = text.slice(end + 2);
  const lines = text
    .slice(0, end)
    .split("\n")
    .slice(isInclusion ? 1 : 0);
  // tlog-proof: extra data is not authenticated, and our proofs have none.
  if (isInclusion && lines[0]?.startsWith("extra ")) lines.shift();
  const [first = "", ...rest] = lines;
  const number = readNumber(first, isInclusion ? "index" : "old");
  if (rest.length > maxHashes) throw new NoteError(`has more than ${maxHashes} hashes`);
  const hashes = rest.map(readHash);
  return isInclusion
    ? { kind: "inclusion", index: number, hashes, checkpoint }
    : { kind: "consistency", from: number, hashes, checkpoint };
}

function readNumber(line: string, word: string): number {
  const digits = new RegExp(`^${word} (0|[1-9]\\d{0,15})$`).exec(line)?.[1];
  const number = Number(digits);
  if (digits !== undefined && Number.isSafeInteger(number)) return number;
  throw new NoteError(`lacks a line "${word}" with a whole number`);
}

function readHash(line: string): Uint8Array {
  const bytes = Buffer.from(line, "base64");
  if (bytes.length !== 32 || bytes.toString("base64") !== line)
    throw new NoteError("has a line in its proof that is not 32 bytes in base64");
  return Uint8Array.from(bytes);
}
