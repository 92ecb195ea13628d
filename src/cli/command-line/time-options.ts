/** Parses durations and times given as options. */
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { parseFullDate, parseRfc3339 } from "../../rfc3339.ts";
import { usageError } from "../exit-codes.ts";
import type { ParsedOptions } from "./options.ts";

const unitSeconds: Readonly<Record<string, number>> = { s: 1, h: 3600, d: 86_400, w: 604_800 };

/** Maximum seconds of a duration: 100 years, so that every resulting time has a four-digit year. */
const maxSeconds = 100 * 366 * 86_400;

/**
 * Parses a duration such as 30d into seconds.
 *
 * @param range in days
 * @throws CliError
 */
export function readSeconds(
  options: ParsedOptions,
  name: string,
  { min = 0, max = Number.POSITIVE_INFINITY } = {},
): number | undefined {
  const text = options.text(name);
  if (text === undefined) return undefined;
  const seconds = parseSeconds(text);
  if (seconds !== undefined && seconds < min * 86_400) throw usageError(`--${name} must be at least ${min}d`);
  if (seconds !== undefined && seconds > max * 86_400) throw usageError(`--${name} may be at most ${max}d`);
  if (seconds !== undefined) return seconds;
  throw usageError(`--${name} "${text}" is not a duration such as 12h or 30d; the units are s, h, d and w`);
}

/**
 * Parses a time: RFC 3339, a date (the start of that day in UTC), or a duration relative to now.
 *
 * @param direction the sign of a duration: 1 for the future, -1 for the past
 * @throws CliError
 */
export function readTime(
  options: ParsedOptions,
  name: string,
  direction: 1 | -1,
  now: Date = new Date(),
): Timestamp | undefined {
  const text = options.text(name);
  if (text === undefined) return undefined;
  const seconds = parseSeconds(text);
  const date =
    seconds === undefined
      ? (parseRfc3339(text) ?? parseFullDate(text))
      : new Date(now.getTime() + direction * seconds * 1000);
  if (date !== undefined) return timestampFromDate(date);
  throw usageError(
    `--${name} "${text}" is neither a time such as 2030-01-31T12:00:00Z nor a duration such as 30d`,
  );
}

function parseSeconds(text: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,10})([shdw])$/.exec(text) ?? [];
  const seconds = Number(count) * (unitSeconds[unit] ?? Number.NaN);
  return seconds <= maxSeconds ? seconds : undefined;
}
