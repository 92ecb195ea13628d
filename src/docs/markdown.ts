/** Renders parts of Markdown pages. */

export function renderTable(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  return [headers, headers.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Formats text as code in a table cell; empty text stays empty. A bar in a table needs a backslash, even in code. */
export function renderCode(text: string): string {
  return text === "" ? "" : `\`${escapeBars(text)}\``;
}

/** Escapes text for a table cell. */
export function escapeBars(text: string): string {
  return text.replaceAll("|", "\\|");
}
