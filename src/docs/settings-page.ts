/** docs/settings.md: every setting of the server. */
import type { AddedSettings } from "../config/setting.ts";
import { listSettings, nameVariable } from "../config.ts";
import { escapeBars, renderCode, renderTable } from "./markdown.ts";

/** Renders the page. */
export function renderSettingsPage(added: readonly AddedSettings[]): string {
  const rows = listSettings(added).map(({ name, valueName, fallback, meaning, isSecret }) => {
    const flag = valueName === undefined ? `--${name}` : `--${name} <${valueName}>`;
    return [
      renderCode(isSecret === true ? "" : flag),
      renderCode(nameVariable(name)),
      renderCode(fallback),
      escapeBars(meaning),
    ];
  });
  return `${introduction}\n${renderTable(["flag", "variable", "default", "meaning"], rows)}\n`;
}

const introduction = `<!-- Written by \`npm run docs\` from src/config.ts. -->

# Settings

This page is for operators of the server. After reading it, you know every setting, its default, and how to give it.

A setting is a flag (\`npm start -- --port 9000\`, \`./qsp serve --port 9000\`) or a variable (\`QSP_PORT=9000\`). A flag takes precedence over its variable. Secrets have no flag, because every user of a machine can read the flags of a program. A bad value or an unknown flag ends the start with one sentence and exit code 2. \`./qsp serve --help\` prints this list. [Who may call](access.md) shows what \`--auth\` changes. The operator's verbs, such as \`./qsp backup\`, take the same settings.
`;
