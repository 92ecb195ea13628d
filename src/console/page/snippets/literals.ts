/** Values as literals of programming languages and words of a shell. No value can end its literal. */

/**
 * Characters that a literal does not contain as they are: controls, and what a terminal or an editor does not show as it
 * is, such as marks that change the direction of a text.
 */
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Quotes a text, and escapes backslashes, quotes, line breaks and hidden characters. */
function quoteText(text: string, escapeHidden: (codePoint: number) => string): string {
  const escaped = text
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("\n", "\\n")
    .replace(hidden, (character) => escapeHidden(character.codePointAt(0) ?? 0));
  return `"${escaped}"`;
}

function toDigits(codePoint: number, digits: number): string {
  return codePoint.toString(16).padStart(digits, "0");
}

/** A literal of Python (Lexical analysis, "Escape sequences") and of Go (Specification, "Rune literals"). */
export function quotePythonOrGo(text: string): string {
  return quoteText(text.toWellFormed(), (point) =>
    point < 0x1_0000 ? `\\u${toDigits(point, 4)}` : `\\U${toDigits(point, 8)}`,
  );
}

/** A literal of TypeScript. */
export function quoteTypeScript(text: string): string {
  return quoteText(text.toWellFormed(), (point) => `\\u{${point.toString(16)}}`);
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

/** The text of bytes that are readable UTF-8; undefined for other bytes. */
export function readText(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.search(/[^\P{C}\n\t]/u) === -1 ? text : undefined;
  } catch {
    return undefined;
  }
}
