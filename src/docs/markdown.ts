/** Parts of Markdown pages. */

/** A table. */
export function renderTable(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  return [headers, headers.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Text as code, for a cell; empty if the text is. A bar in a table needs a backslash, even in code. */
export function renderCode(text: string): string {
  return text === "" ? "" : `\`${escapeBars(text)}\``;
}

/** Text for a cell. */
export function escapeBars(text: string): string {
  return text.replaceAll("|", "\\|");
}
