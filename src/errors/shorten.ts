/** Shortens the parts of a request that an error quotes. */

/** Maximum characters of one quoted text. */
export const maxEchoCharacters = 100;
/** Maximum characters of a message or description: gRPC clients accept 8 KiB of trailers. */
const maxMessageCharacters = 1000;

/**
 * Shortens request text for an error message.
 *
 * @returns at most `maxCharacters` UTF-16 code units; shortened text ends with "…", and no surrogate pair is
 *   split
 */
export function excerpt(text: string, maxCharacters = maxEchoCharacters): string {
  if (text.length <= maxCharacters) return text;
  const end = maxCharacters - 1;
  const isPairSplit =
    /[\ud800-\udbff]/.test(text.charAt(end - 1)) && /[\udc00-\udfff]/.test(text.charAt(end));
  return `${text.slice(0, isPairSplit ? end - 1 : end)}…`;
}

/** Shortens the quoted texts and metadata values in a sentence, then the sentence itself. */
export function shortenSentence(sentence: string, values: readonly string[]): string {
  let short = sentence;
  for (const value of values) short = short.replaceAll(value, () => excerpt(value));
  if (short.length > maxEchoCharacters) {
    // Also matches short texts: a search for long ones alone would restart at each quote.
    short = excerpt(short, 10 * maxMessageCharacters).replace(
      /"((?:[^"\\]|\\.?)*)("|$)/gsu,
      (_all, quoted: string, close: string) => `"${excerpt(quoted)}${close}`,
    );
  }
  // JSON can contain half a surrogate pair. Trailers cannot.
  return excerpt(short, maxMessageCharacters).toWellFormed();
}
