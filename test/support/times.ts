import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { expect } from "vitest";

/** Expects a time that lies between an earlier moment and now, each moved by the same number of milliseconds. */
export function expectTimeSince(beforeMs: number, time: Timestamp | undefined, laterMs = 0): void {
  const atMs = time && timestampDate(time).getTime() - laterMs;
  expect(atMs).toBeGreaterThanOrEqual(beforeMs);
  expect(atMs).toBeLessThanOrEqual(Date.now());
}
