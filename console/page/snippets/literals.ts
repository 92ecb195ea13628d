/** Values as JSON and as shell words. No value can break out of its literal. */

/**
 * Characters that are always escaped in a literal: controls, and characters that terminals or editors do not
 * display faithfully, such as bidirectional marks.
 */
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** JSON without hidden characters. */
export function writeJson(value: unknown, space?: number): string {
  return JSON.stringify(value, undefined, space).replace(hidden, (character) =>
    // Hidden characters that JSON.stringify does not escape.
    character === "\n"
      ? character
      : Array.from(
          { length: character.length },
          (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
        ).join(""),
  );
}

/** Quotes a word for a POSIX shell if needed. In single quotes, only the quote itself is special. */
export function quoteShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
