/** CRC32C (RFC 3720, section 12.1), with which Google's clients detect damage between themselves and the key service. */
import { refuseField } from "../../src/errors.ts";
import { checksumMismatch } from "./reasons.ts";

/** The polynomial of Castagnoli, 0x1edc6f41, with its bits reversed. */
const polynomial = 0x82f63b78;

/** The remainder of each byte. */
const remainders = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit += 1) remainder = (remainder >>> 1) ^ (remainder & 1 ? polynomial : 0);
  return remainder;
});

/** Computes the CRC32C of bytes, from 0 to 2^32 - 1. */
export function computeCrc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (remainders[(crc ^ byte) & 0xff] as number);
  return ~crc >>> 0;
}

/** The CRC32C of a field of a response, as its google.protobuf.Int64Value. */
export function packCrc32c(bytes: Uint8Array): bigint {
  return BigInt(computeCrc32c(bytes));
}

/**
 * Checks the CRC32C that a request gives for one of its fields.
 *
 * @param field the field of the checksum, by its JSON name: "dataCrc32c".
 * @param given undefined if the request has none.
 * @returns the value of the response's `verified…Crc32c`: whether the request has a checksum.
 * @throws CHECKSUM_MISMATCH
 */
export function checkCrc32c(field: string, bytes: Uint8Array, given: bigint | undefined): boolean {
  if (given === undefined) return false;
  const computed = packCrc32c(bytes);
  if (given === computed) return true;
  const description = `is ${given}, but the CRC32C of the ${bytes.length} bytes that arrived is ${computed}`;
  throw refuseField(field, description, checksumMismatch);
}
