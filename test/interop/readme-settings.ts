/** The settings table of the README, out of config.ts: `node test/interop/readme-settings.ts` writes it there. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeSettings } from "../../src/config.ts";

const path = join(import.meta.dirname, "../../README.md");
const place = /(?<=^<!-- settings: .* -->\n).*?(?=^<!-- \/settings -->$)/ms;

/** The table of the README as it stands; undefined if its markers are gone. */
export function readSettingsTable(): string | undefined {
  return place.exec(readFileSync(path, "utf8"))?.[0];
}

/** The table as config.ts has it. */
export function renderSettingsTable(): string {
  const rows = describeSettings().split("\n").map(renderRow);
  return ["", "| flag | variable | default | meaning |", "| --- | --- | --- | --- |", ...rows, "", ""].join(
    "\n",
  );
}

/** A line of the help: flag and value, if it has any; variable; meaning; default in parentheses, if it has one. */
function renderRow(line: string): string {
  const match = /^ {2}(.*?) +(QSP_\w+) +(.*?\.)(?: \((.*)\))?$/.exec(line);
  if (match === null) throw new Error(`a line of the help has another form: ${line}`);
  const [, flag = "", variable = "", meaning = "", fallback = ""] = match;
  return `| ${[code(flag), code(variable), code(fallback), meaning.replaceAll("|", "\\|")].join(" | ")} |`;
}

/** In a table a bar stands for itself only behind a backslash, also in code. */
function code(text: string): string {
  return text === "" ? "" : `\`${text.replaceAll("|", "\\|")}\``;
}

if (import.meta.main) {
  const readme = readFileSync(path, "utf8");
  writeFileSync(
    path,
    readme.replace(place, () => renderSettingsTable()),
  );
}
