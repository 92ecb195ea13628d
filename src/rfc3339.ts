/** Reads times as RFC 3339 has them. JavaScript is more generous: it takes hour 24, and February 31 for March 3. */

/** RFC 3339, section 5.6. A leap second, which no Date can be, is refused. */
const pattern =
  /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Reads a time such as 2030-01-31T12:00:00Z. @returns undefined for what is none, or does not exist */
export function parseRfc3339(text: string): Date | undefined {
  const [, day] = pattern.exec(text) ?? [];
  return day !== undefined && parseFullDate(day) !== undefined ? new Date(text) : undefined;
}

/** Reads a day such as 2030-01-31: its start in UTC. @returns undefined for what is none, or does not exist */
export function parseFullDate(text: string): Date | undefined {
  const day = new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : Number.NaN);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text) ? day : undefined;
}
