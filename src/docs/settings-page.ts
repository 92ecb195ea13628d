/** Generates docs/settings.md: every server setting. */
import type { AddedSettings } from "../config/setting.ts";
import { listSettings, nameVariable } from "../config.ts";
import { escapeBars, renderCode, renderTable } from "./markdown.ts";

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

This page lists every server setting with its default.

A setting is a flag (\`npm start -- --port 9000\`, \`./qsp serve --port 9000\`) or a variable (\`QSP_PORT=9000\`). The flag takes precedence. Secrets have no flag, because every user of a machine can see the flags of running programs. An invalid value or an unknown flag ends the start with a one-sentence error and exit code 2. \`./qsp serve --help\` prints this list. [Who may call](access.md) shows what \`--auth\` changes. Operator verbs, such as \`./qsp backup\`, accept the same settings.
`;
