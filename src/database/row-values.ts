/**
 * Values out of rows. One that no message can carry was put there by somebody else, as the tag of its record tells; it
 * is given as another, so that whoever lists records can show the rest.
 */

/** The end of the year 9999: google.protobuf.Timestamp and RFC 3339 have no later time. */
const latestMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const largestInt32 = 2 ** 31 - 1;
const largestUint32 = 2 ** 32 - 1;

/** A time, out of milliseconds since 1970, UTC. */
export function readTime(ms: number): Date {
  return new Date(ms >= 0 && ms <= latestMs ? ms : 0);
}

/** A time that may not have come. */
export function readOptionalTime(ms: number | null): Date | undefined {
  return ms === null ? undefined : readTime(ms);
}

/** A number from 0 that an int32 field carries. */
export function readInt32(value: number): number {
  return value >= 0 && value <= largestInt32 ? value : 0;
}

/** A number that a uint32 field carries. */
export function readUint32(value: number): number {
  return value >= 0 && value <= largestUint32 ? value : 0;
}
