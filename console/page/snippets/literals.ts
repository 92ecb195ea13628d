/** Values as literals of programming languages and words of a shell. No value can end its literal. */

/**
 * Characters that a literal does not contain as they are: controls, and what a terminal or an editor does not show as it
 * is, such as marks that change the direction of a text.
 */
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

function toDigits(codePoint: number, digits: number): string {
  return codePoint.toString(16).padStart(digits, "0");
}

/** A literal of Python (Lexical analysis, "Escape sequences") and of Go (Specification, "Rune literals"). */
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

/** Quotes a word for a POSIX shell, where needed. In single quotes, no character but the quote is special. */
export function quoteShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
