/** Writes archives that are byte-for-byte identical if their content is. */
import { gzipSync } from "node:zlib";
import type { SourceFile } from "./sources.ts";

const blockBytes = 512;
/** Length of the `name` field in a ustar header (POSIX.1-1988). */
const maxPathBytes = 100;
/** RFC 1952, section 2.3: the position of the OS field, and its value for "unknown". */
const gzipOsOffset = 9;
const unknownOs = 255;

/**
 * Packs files into a gzip-compressed ustar archive. All files have mode 0644, owner 0 and time 0.
 *
 * @throws Error for a path of more than 100 bytes
 */
export function packTarGz(files: readonly SourceFile[]): Uint8Array {
  const blocks = files.flatMap(({ path, content }) => [
    buildHeader(path, content.length),
    content,
    new Uint8Array(-content.length & (blockBytes - 1)),
  ]);
  // Two empty blocks end an archive.
  const archive = gzipSync(Buffer.concat([...blocks, new Uint8Array(2 * blockBytes)]), { level: 9 });
  // Otherwise the bytes would depend on the server's operating system.
  archive[gzipOsOffset] = unknownOs;
  return archive;
}

function buildHeader(path: string, contentBytes: number): Uint8Array {
  if (Buffer.byteLength(path) > maxPathBytes)
    throw new Error(`${path}: paths in the archive have at most ${maxPathBytes} bytes`);
  const header = Buffer.alloc(blockBytes);
  header.write(path, 0);
  header.write("0000644\0", 100);
  header.write("0000000\0", 108);
  header.write("0000000\0", 116);
  header.write(`${contentBytes.toString(8).padStart(11, "0")}\0`, 124);
  header.write("00000000000\0", 136);
  // The checksum counts its own field as spaces.
  header.write("        ", 148);
  header.write("0", 156);
  header.write("ustar\x0000", 257);
  const checksum = header.reduce((sum, byte) => sum + byte, 0);
  header.write(`${checksum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
