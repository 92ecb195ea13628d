/**
 * Parses RFC 3339 times. JavaScript is more lenient: it accepts hour 24, and reads February 31 as March 3.
 */

/** RFC 3339, section 5.6. Rejects leap seconds, which a Date cannot represent. */
const pattern =
  /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/**
 * Parses a time such as 2030-01-31T12:00:00Z.
 *
 * @returns undefined if the text is not a time or the time does not exist
 */
export function parseRfc3339(text: string): Date | undefined {
  const [, day] = pattern.exec(text) ?? [];
  return day !== undefined && parseFullDate(day) !== undefined ? new Date(text) : undefined;
}

/**
 * Parses a day such as 2030-01-31 to its start in UTC.
 *
 * @returns undefined if the text is not a day or the day does not exist
 */
export function parseFullDate(text: string): Date | undefined {
  const day = new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : Number.NaN);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text) ? day : undefined;
}
