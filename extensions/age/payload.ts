/** The payload of an age file: STREAM with ChaCha20-Poly1305 in chunks of 64 KiB (C2SP age, "Payload"). */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { distrustError, usageError } from "../../src/cli/exit-codes.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import type { ByteReader } from "./byte-reader.ts";

const [nonceBytes, chunkBytes, tagBytes] = [16, 65_536, 16];
const cipher = "chacha20-poly1305";
const options = { authTagLength: tagBytes };

/**
 * Encrypts in constant memory. Yields the nonce, then ciphertext and tag of each chunk, which are valid until two more are
 * requested.
 */
export async function* sealPayload(
  fileKey: Uint8Array,
  plaintext: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const nonce = randomBytes(nonceBytes);
  yield nonce;
  const key = derivePayloadKey(fileKey, nonce);
  try {
    for await (const { bytes, index, isLast } of cut(plaintext, chunkBytes)) {
      const sealing = createCipheriv(cipher, key, writeChunkNonce(index, isLast), options);
      const ciphertext = sealing.update(bytes);
      sealing.final();
      yield ciphertext;
      yield sealing.getAuthTag();
      free(ciphertext);
    }
  } finally {
    wipe(key);
  }
}

/**
 * Decrypts in constant memory. Each chunk that it yields is authentic, but the file is complete only if it ends without an
 * error.
 *
 * @param reader at the start of the payload
 * @throws CliError if a chunk was changed, moved or removed
 */
export async function* openPayload(fileKey: Uint8Array, reader: ByteReader): AsyncGenerator<Uint8Array> {
  const nonce = await reader.read(nonceBytes);
  if (nonce.length < nonceBytes) throw usageError("the file is malformed: it ends before its payload");
  const key = derivePayloadKey(fileKey, nonce);
  try {
    for await (const chunk of cut(reader.rest(), chunkBytes + tagBytes)) {
      const plaintext = openChunk(key, chunk);
      // STREAM: only an empty file ends with an empty chunk.
      if (plaintext === undefined || (plaintext.length === 0 && chunk.index > 0))
        throw distrustError(`the file was changed or truncated: chunk ${chunk.index + 1} does not decrypt`);
      yield plaintext;
      free(plaintext);
    }
  } finally {
    wipe(key);
  }
}

function openChunk(key: Uint8Array, { bytes, index, isLast }: Chunk): Uint8Array | undefined {
  const end = bytes.length - tagBytes;
  if (end < 0) return undefined;
  const opening = createDecipheriv(cipher, key, writeChunkNonce(index, isLast), options);
  opening.setAuthTag(bytes.subarray(end));
  const plaintext = opening.update(bytes.subarray(0, end));
  try {
    opening.final();
    return plaintext;
  } catch {
    wipe(plaintext);
    return undefined;
  }
}

/**
 * Frees a chunk at once. If garbage collection freed it, each new chunk would take fresh memory from the system, which
 * costs more time than its encryption.
 */
export function free({ buffer, length }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

function derivePayloadKey(fileKey: Uint8Array, nonce: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", fileKey, nonce, "payload", 32));
}

/** 11 bytes of counter, big-endian, and whether this is the last chunk. */
function writeChunkNonce(index: number, isLast: boolean): Uint8Array {
  const nonce = Buffer.alloc(12);
  // Numbers are exact up to 2^53 chunks.
  nonce.writeUInt32BE(Math.floor(index / 2 ** 32), 3);
  nonce.writeUInt32BE(index % 2 ** 32, 7);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

interface Chunk {
  /** Valid until the next one is requested. */
  readonly bytes: Uint8Array;
  readonly index: number;
  readonly isLast: boolean;
}

/** Cuts a stream into chunks of one size. Only the last one may be shorter, or empty if it is the only one. */
async function* cut(stream: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Chunk> {
  const held = new Uint8Array(size);
  let heldBytes = 0;
  let index = 0;
  for await (const part of stream) {
    let at = 0;
    while (at < part.length) {
      if (heldBytes === size) {
        yield { bytes: held, index: index++, isLast: false };
        heldBytes = 0;
      }
      // Without a copy if more follows.
      if (heldBytes === 0 && part.length - at > size) {
        yield { bytes: part.subarray(at, at + size), index: index++, isLast: false };
        at += size;
        continue;
      }
      const taken = part.subarray(at, at + size - heldBytes);
      held.set(taken, heldBytes);
      heldBytes += taken.length;
      at += taken.length;
    }
  }
  yield { bytes: held.subarray(0, heldBytes), index, isLast: true };
}
