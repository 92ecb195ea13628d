/** Values as language literals and shell words. No value can break out of its literal. */

/**
 * Characters that are always escaped in a literal: controls, and characters that terminals or editors do not
 * display faithfully, such as bidirectional marks.
 */
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

function toDigits(codePoint: number, digits: number): string {
  return codePoint.toString(16).padStart(digits, "0");
}

/** A Python (Lexical analysis, "Escape sequences") or Go (Specification, "Rune literals") literal. */
export function quotePythonOrGo(text: string): string {
  const escaped = text
    .toWellFormed()
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("\n", "\\n")
    .replace(hidden, (character) => {
      const point = character.codePointAt(0) ?? 0;
      return point < 0x1_0000 ? `\\u${toDigits(point, 4)}` : `\\U${toDigits(point, 8)}`;
    });
  return `"${escaped}"`;
}

/** JSON without hidden characters. */
export function writeJson(value: unknown, space?: number): string {
  return JSON.stringify(value, undefined, space).replace(hidden, (character) =>
    // Hidden characters that JSON.stringify does not escape.
    character === "\n"
      ? character
      : Array.from(
          { length: character.length },
          (_, at) => `\\u${toDigits(character.charCodeAt(at), 4)}`,
        ).join(""),
  );
}

/** Quotes a word for a POSIX shell if needed. In single quotes, only the quote itself is special. */
export function quoteShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
