/**
 * CRC32C (RFC 3720, section 12.1). Google's clients use it to detect corruption between themselves and the
 * key service.
 */
import { refuseField } from "../../src/errors.ts";
import { checksumMismatch } from "./reasons.ts";

/** The Castagnoli polynomial, 0x1edc6f41, with its bits reversed. */
const polynomial = 0x82f63b78;

/** Lookup table: the remainder of each byte value. */
const remainders = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit += 1) remainder = (remainder >>> 1) ^ (remainder & 1 ? polynomial : 0);
  return remainder;
});

/** Computes the CRC32C of bytes, 0 to 2^32 - 1. */
export function computeCrc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (remainders[(crc ^ byte) & 0xff] as number);
  return ~crc >>> 0;
}

/** A response field's CRC32C as google.protobuf.Int64Value. */
export function packCrc32c(bytes: Uint8Array): bigint {
  return BigInt(computeCrc32c(bytes));
}

/**
 * Verifies the CRC32C that a request gives for one of its fields.
 *
 * @param field the checksum field's JSON name: "dataCrc32c"
 * @param given undefined if the request has none
 * @returns the response's `verified…Crc32c`: whether the request had a checksum
 * @throws CHECKSUM_MISMATCH
 */
export function checkCrc32c(field: string, bytes: Uint8Array, given: bigint | undefined): boolean {
  if (given === undefined) return false;
  const computed = packCrc32c(bytes);
  if (given === computed) return true;
  const description = `is ${given}, but the CRC32C of the ${bytes.length} bytes received is ${computed}`;
  throw refuseField(field, description, checksumMismatch);
}
