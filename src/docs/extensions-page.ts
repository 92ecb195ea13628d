/** Generates docs/extensions.md: the interfaces and tools beyond the core. */
import type { Extension } from "../extension.ts";
import { renderTable } from "./markdown.ts";

export function renderExtensionsPage(extensions: readonly Extension[]): string {
  const rows = extensions.map(({ name, title, summary }) => [
    `[${title}](../extensions/${name}/README.md)`,
    summary,
  ]);
  return `${introduction}\n${renderTable(["page", "for"], rows)}\n`;
}

const introduction = `<!-- Written by \`npm run docs\` from extensions/index.ts. -->

# Extensions

Extensions are interfaces that others specified, such as Google Cloud KMS, and tools for special purposes. Each has a folder in \`extensions/\` with its code, tests and page. To leave one out, delete its folder, remove its import and its name from the list in [extensions/index.ts](../extensions/index.ts), run \`npm run docs\`, and restart.

A server creates the tables of all its extensions when it first starts, whether they are used or not, and a store with these tables requires the extension. So leave out Verifiable logs, Google Cloud KMS, WireGuard and TUF before the first start. Afterwards the server does not start without them, and the error names the missing migration step, which ends with the extension's name. You can remove the others, and add any extension, at any time.
`;
