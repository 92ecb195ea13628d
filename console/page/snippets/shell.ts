/** Parts of commands for a shell. */
import { tokenVariable } from "./input.ts";
import { quoteShell } from "./literals.ts";

/** The header of the token. The shell replaces the variable in double quotes, and reads nothing else in its value. */
export const shellToken = `-H "authorization: Bearer $${tokenVariable}"`;

/** Linux passes at most 131,072 bytes as one argument (execve(2), MAX_ARG_STRLEN); a character may have four. */
const maxArgumentCharacters = 30_000;

/** Joins the parts of a command, one per line. */
export function joinLines(parts: readonly string[]): string {
  return parts.join(" \\\n  ");
}

/**
 * Joins the parts of a command that sends a body, which a shell may not take as an argument.
 *
 * @param fromInput what the program takes as `-d` to read its standard input
 * @param json the body, which is JSON: it cannot have a line that ends the document
 */
export function joinBody(
  parts: readonly string[],
  fromInput: string,
  json: string,
  ...rest: string[]
): string {
  return json.length <= maxArgumentCharacters
    ? joinLines([...parts, `-d ${quoteShell(json)}`, ...rest])
    : `${joinLines([...parts, `-d ${fromInput}`, ...rest])} <<'END'\n${json}\nEND`;
}
