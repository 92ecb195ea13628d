/** Shortens the parts of a request that an error repeats. */

/** The most characters of one text of the request that an error repeats. */
export const maxEchoCharacters = 100;
/** The most characters of a message or a description: gRPC clients accept 8 KiB of trailers. */
const maxMessageCharacters = 1000;

/**
 * Shortens text of a request for an error message.
 *
 * @returns at most `maxCharacters` UTF-16 code units. Shortened text ends with "…", and no surrogate pair is split.
 */
export function excerpt(text: string, maxCharacters = maxEchoCharacters): string {
  if (text.length <= maxCharacters) return text;
  const end = maxCharacters - 1;
  const isPairSplit =
    /[\ud800-\udbff]/.test(text.charAt(end - 1)) && /[\udc00-\udfff]/.test(text.charAt(end));
  return `${text.slice(0, isPairSplit ? end - 1 : end)}…`;
}

/** Shortens quoted texts and metadata values that a sentence repeats, then the sentence itself. */
export function shortenSentence(sentence: string, values: readonly string[]): string {
  let short = sentence;
  for (const value of values) short = short.replaceAll(value, () => excerpt(value));
  if (short.length > maxEchoCharacters) {
    // It matches short texts too: a search for long ones alone would begin anew at each quote.
    short = excerpt(short, 10 * maxMessageCharacters).replace(
      /"((?:[^"\\]|\\.?)*)("|$)/gsu,
      (_all, quoted: string, close: string) => `"${excerpt(quoted)}${close}`,
    );
  }
  // JSON can hold half a surrogate pair. No trailer can.
  return excerpt(short, maxMessageCharacters).toWellFormed();
}
