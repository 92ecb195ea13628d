/** docs/extensions.md: what the program has besides its core. */
import type { Extension } from "../extension.ts";
import { renderTable } from "./markdown.ts";

/** Renders the page. */
export function renderExtensionsPage(extensions: readonly Extension[]): string {
  const rows = extensions.map(({ name, title, summary }) => [
    `[${title}](../extensions/${name}/README.md)`,
    summary,
  ]);
  return `${introduction}\n${renderTable(["page", "for"], rows)}\n`;
}

const introduction = `<!-- Written by \`npm run docs\` from extensions/index.ts. -->

# Extensions

This page is for everyone who looks for an interface that somebody else specified, or for the tool of a trade. After reading it, you know those of this program. Each has a folder in \`extensions/\` with its code, its tests and its page. To leave one out, remove its folder, its import and its name in the list in [extensions/index.ts](../extensions/index.ts), run \`npm run docs\`, and start again.

A store that an extension has tables in needs this extension: without it, the start fails with the name of the migration step that is missing, which ends with the name of the extension. An extension can be added at any time; the next start makes its tables.
`;
