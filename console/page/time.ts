/** Times as the tools show and parse them: always UTC, so that they can be compared with server logs. */
import { type Timestamp, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";

/** "2026-11-23 13:58", or "–" if absent. */
export function formatMinute(time: Timestamp | undefined): string {
  return formatSecond(time).slice(0, 16);
}

/** "2026-11-23 13:58:50.123", or "–" if absent. */
export function formatSecond(time: Timestamp | undefined): string {
  if (time === undefined) return "–";
  return timestampDate(time).toISOString().replace("T", " ").slice(0, 23);
}

/** @param text a datetime-local field's value, "2026-11-23T13:58"; read as UTC */
export function parseMinute(text: string): Timestamp | undefined {
  const date = new Date(`${text}Z`);
  return Number.isNaN(date.getTime()) ? undefined : timestampFromDate(date);
}
