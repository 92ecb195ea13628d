/**
 * Reads files up to a limit that also applies to devices and pipes: they have no size, and some never end.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { readErrorCode } from "./system-error.ts";

/** Bytes to read at a time. */
const chunkBytes = 64 * 1024;

/** Maximum bytes of a settings or key file. */
export const maxSmallFileBytes = 1024 * 1024;

/** Thrown if a file has more bytes than its reader accepts. */
export class FileTooLargeError extends Error {}

/**
 * Reads a file to its end.
 *
 * @param path 0 for standard input
 * @throws FileTooLargeError after the first byte beyond the limit, and the system error
 */
export function readFileWithin(path: string | 0, maxBytes: number): Buffer<ArrayBuffer> {
  const file = path === 0 ? path : openSync(path, "r");
  try {
    const chunks: Buffer[] = [];
    let length = 0;
    // A device such as /dev/zero is larger than it reports.
    const tooLarge = () =>
      new FileTooLargeError(`${path === 0 ? "standard input" : path} is larger than ${maxBytes} bytes`);
    if (fstatSync(file).size > maxBytes) throw tooLarge();
    for (;;) {
      const chunk = Buffer.allocUnsafeSlow(chunkBytes);
      const bytesRead = readNext(file, chunk);
      if (bytesRead === 0) break;
      chunks.push(chunk.subarray(0, bytesRead));
      length += bytesRead;
      if (length > maxBytes) throw tooLarge();
    }
    const whole = Buffer.concat(chunks);
    // A file may hold a secret key.
    for (const chunk of chunks) chunk.fill(0);
    return whole;
  } finally {
    if (path !== 0) closeSync(file);
  }
}

/** Waits for bytes: a program that shares standard input may have made it non-blocking. */
function readNext(file: number, chunk: Uint8Array): number {
  for (;;) {
    try {
      return readSync(file, chunk);
    } catch (error) {
      if (readErrorCode(error) !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}
