/** Parses and verifies checkpoints (signed notes, c2sp.org/tlog-checkpoint) in the browser. */
import { verifyHere } from "../../algorithms.ts";
import { fromBase64Url, fromUtf8, toUtf8 } from "../../values.ts";

/** A log's state according to its checkpoint. */
export interface Checkpoint {
  readonly origin: string;
  /** Number of leaves. */
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
  /** Whether the log's ML-DSA-65 key signed it. */
  readonly isSigned: boolean;
  /** The signature, 3309 bytes; empty if absent. */
  readonly signature: Uint8Array;
}

const algorithm = "ML-DSA-65";
const publicKeyBytes = 1952;
/** The verifier key's type (proto/tlog, Log.verifier_keys). */
const keyType = Uint8Array.of(0xff, ...toUtf8("quantum-safe-playground/ML-DSA-65\n"));
/** The signature's context. */
const context = toUtf8("c2sp.org/signed-note");

/**
 * Parses a checkpoint and verifies its post-quantum signature.
 *
 * @param verifierKeys the log's keys as returned by ListLogs
 * @throws TypeError if the note is not UTF-8, DOMException if its base64 is not valid
 */
export async function readCheckpoint(note: Uint8Array, verifierKeys: readonly string[]): Promise<Checkpoint> {
  const whole = fromUtf8(note);
  const end = whole.lastIndexOf("\n\n") + 1;
  const text = whole.slice(0, end);
  const [origin = "", size = "", root = ""] = text.split("\n");
  const key = verifierKeys.map(readKey).find((found) => found !== undefined);
  const signature = key === undefined ? new Uint8Array() : findSignature(whole.slice(end), key);
  const isSigned =
    key?.name === origin && (await verifyHere(algorithm, signature, toUtf8(text), key.publicKey, context));
  return { origin, size: Number(size), root: fromBase64Url(root), isSigned, signature };
}

interface Key {
  readonly name: string;
  /** 8 hexadecimal digits. */
  readonly id: string;
  readonly publicKey: Uint8Array;
}

/** Parses a verifier key: `<name>+<id>+<base64 of type and key>`. Undefined for other algorithms. */
function readKey(text: string): Key | undefined {
  const [, name = "", id = "", base64 = ""] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? [];
  const bytes = fromBase64Url(base64);
  const isOurs = keyType.every((byte, at) => bytes[at] === byte);
  if (!isOurs || bytes.length !== keyType.length + publicKeyBytes) return undefined;
  return { name, id, publicKey: bytes.subarray(keyType.length) };
}

/** Finds a key's signature among the lines below the text: `— <name> <base64 of ID and signature>`. */
function findSignature(lines: string, { name, id }: Key): Uint8Array {
  for (const line of lines.split("\n")) {
    const [dash, lineName, base64 = ""] = line.split(" ");
    if (dash !== "—" || lineName !== name) continue;
    const bytes = fromBase64Url(base64);
    if (new DataView(bytes.buffer).getUint32(0) === Number.parseInt(id, 16)) return bytes.slice(4);
  }
  return new Uint8Array();
}
