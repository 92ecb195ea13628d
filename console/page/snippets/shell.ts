/** Parts of shell commands. */
import { tokenVariable } from "./input.ts";
import { quoteShell } from "./literals.ts";

/** The token header. In double quotes, the shell expands the variable and interprets nothing in its value. */
export const shellToken = `-H "authorization: Bearer $${tokenVariable}"`;

/** Linux limits a single argument to 131,072 bytes (execve(2), MAX_ARG_STRLEN); a character can have four. */
const maxArgumentCharacters = 30_000;

/** Joins a command's parts, one per line. */
export function joinLines(parts: readonly string[]): string {
  return parts.join(" \\\n  ");
}

/**
 * Joins the parts of a command with a body, which may be too long for an argument.
 *
 * @param fromInput the value of `-d` that makes the program read standard input
 * @param json the body; being JSON, it cannot contain a line that ends the heredoc
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
