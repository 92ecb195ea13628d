/** Reads files and standard input for verbs. */
import { fstatSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { wipe } from "../../crypto/bytes.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import { FileTooLargeError, readFileWithin } from "../../read-file.ts";
import { usageError } from "../exit-codes.ts";

/** Bytes per read; below the 4 MiB that a server accepts per stream message. */
export const chunkBytes = 512 * 1024;
/** Maximum bytes to read at once: what a server accepts in one message. */
export const maxWholeBytes = 4 * 1024 * 1024;

/**
 * Reads a file in chunks; "-" is standard input. Each chunk is valid until the next one is requested.
 *
 * @param reused takes all chunks. Without it each chunk has a new buffer, which a transport may hold for longer.
 */
export async function* readChunks(path: string, reused?: Uint8Array): AsyncGenerator<Uint8Array> {
  if (path === "-") {
    requireContent();
    for await (const chunk of process.stdin) yield* splitChunk(chunk);
    return;
  }
  const file = await open(path, "r");
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read(reused ?? Buffer.allocUnsafe(chunkBytes));
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } catch (error) {
    throw error instanceof Error && "code" in error && error.code === "EISDIR"
      ? usageError(`${path} is a directory; name a file`)
      : error;
  } finally {
    await file.close();
  }
}

/** Node reads a directory on standard input as if it were empty. */
function requireContent(): void {
  if (fstatSync(0).isDirectory()) throw usageError("standard input is a directory; give it a file");
}

function* splitChunk(chunk: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < chunk.length; at += chunkBytes) yield chunk.subarray(at, at + chunkBytes);
}

/** Returns the size of a file in bytes; undefined for standard input and other non-files. */
export function readSize(path: string): number | undefined {
  const found = path === "-" ? undefined : statSync(path);
  return found?.isFile() ? found.size : undefined;
}

/**
 * Concatenates chunks.
 *
 * @throws CliError if they exceed the limit
 */
export async function gather(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    length += chunk.length;
    if (length > maxBytes) throw usageError(tooLarge);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Names a file for people. */
export function nameInput(path: string): string {
  return path === "-" ? "standard input" : path;
}

/**
 * Reads a whole file; "-" is standard input. If the file is secret, the caller wipes the bytes; they are nowhere else.
 *
 * @throws CliError if it exceeds the limit
 */
export async function readWhole(path: string, maxBytes = maxWholeBytes): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  async function* kept(): AsyncGenerator<Uint8Array> {
    for await (const chunk of readChunks(path)) {
      chunks.push(chunk);
      yield chunk;
    }
  }
  try {
    return await gather(kept(), maxBytes, `${nameInput(path)} is larger than ${maxBytes} bytes`);
  } finally {
    wipe(...chunks);
  }
}

const [newline, carriageReturn] = [0x0a, 0x0d];

/** Yields the bytes of each complete line without delay; "-" is standard input. */
export async function* readByteLines(path: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  // Chunks of the current, incomplete line.
  let parts: Uint8Array[] = [];
  let length = 0;
  const takeLine = (): Uint8Array<ArrayBuffer> => {
    const line = Uint8Array.from(Buffer.concat(parts));
    [parts, length] = [[], 0];
    return line.at(-1) === carriageReturn ? line.subarray(0, -1) : line;
  };
  for await (const chunk of readChunks(path)) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      parts.push(chunk.subarray(start, end));
      yield takeLine();
      start = end + 1;
    }
    parts.push(chunk.slice(start));
    length += chunk.length - start;
    if (length > maxWholeBytes) throw usageError(`${path} has a line of more than ${maxWholeBytes} bytes`);
  }
  if (length > 0) yield takeLine();
}

/**
 * Yields each complete line of a text without delay; "-" is standard input.
 *
 * @throws CliError if it is not UTF-8
 */
export async function* readLines(path: string): AsyncGenerator<string> {
  let number = 0;
  for await (const line of readByteLines(path)) {
    number += 1;
    yield decodeText(line, `line ${number} of ${nameInput(path)}`);
  }
}

/**
 * Decodes UTF-8 strictly.
 *
 * @throws CliError naming the input that is not UTF-8
 */
export function decodeText(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`${what} is not UTF-8`);
  }
}

/** Reads a data operand: the data itself, @FILE, or - for standard input. */
export async function readData(operand: string): Promise<Uint8Array<ArrayBuffer>> {
  if (operand === "-") return readWhole("-");
  if (operand.startsWith("@")) return readWhole(operand.slice(1));
  return Uint8Array.from(Buffer.from(operand));
}

export function readText(path: string): string {
  if (path === "-") requireContent();
  else if (statSync(path).isDirectory()) throw usageError(`${path} is a directory; name a file`);
  try {
    return readFileWithin(path === "-" ? 0 : path, maxWholeBytes).toString();
  } catch (error) {
    throw error instanceof FileTooLargeError ? usageError(error.message) : error;
  }
}

/**
 * Runs a parser of keys or certificates.
 *
 * @throws CliError that names the origin for a CryptoError
 */
export function explainKey<T>(origin: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw explainKeyError(origin, error);
  }
}

/**
 * Converts a CryptoError to a CliError.
 *
 * @param origin names the file
 */
export function explainKeyError(origin: string, error: unknown): unknown {
  return error instanceof CryptoError ? usageError(`${origin}: ${error.message}`) : error;
}
