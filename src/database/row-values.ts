/**
 * Reads values from rows. A value that no message can represent was written by someone other than the server,
 * and the record's tag detects it. It is replaced by a valid value, so that lists can still show other
 * records.
 */

/** End of the year 9999: google.protobuf.Timestamp and RFC 3339 have no later time. */
const latestMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const largestInt32 = 2 ** 31 - 1;
const largestUint32 = 2 ** 32 - 1;

/** Reads a time from milliseconds since 1970, UTC. */
export function readTime(ms: number): Date {
  return new Date(ms >= 0 && ms <= latestMs ? ms : 0);
}

/** Reads a non-negative number that fits an int32 field. */
export function readInt32(value: number): number {
  return value >= 0 && value <= largestInt32 ? value : 0;
}

/** Reads a number that fits a uint32 field. */
export function readUint32(value: number): number {
  return value >= 0 && value <= largestUint32 ? value : 0;
}
