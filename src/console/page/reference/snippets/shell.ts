/** Quotes a text for a POSIX shell, if needed. */
export function quoteShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The header of the token, which the shell reads from a variable. */
export const shellToken = '-H "authorization: Bearer $QSP_TOKEN"';

/** Joins the parts of a command, one per line. */
export function joinLines(parts: readonly string[]): string {
  return parts.join(" \\\n  ");
}
