/** What `--help` and `qsp help` print. */
import { exitCodeMeanings } from "./exit-codes.ts";
import type { Options } from "./options.ts";
import { commonOptions, describeUsage, serverOptions } from "./options.ts";
import type { Verb } from "./verb.ts";

const exitCodeLines = exitCodeMeanings.map(([code, meaning]) => `  ${String(code).padEnd(4)}${meaning}`);

/** Describes all verbs, one per line. */
export function describeVerbs(verbs: readonly Verb[]): string {
  const [operators, clients] = [true, false].map((takes) =>
    verbs.filter(({ settings }) => (settings !== undefined) === takes),
  );
  return `usage: qsp VERB [operands] [options]

Serves post-quantum cryptography over gRPC, gRPC-Web, Connect and REST, and calls such a server.
qsp VERB --help shows a verb with an example; qsp serve --help shows the settings; qsp version shows the version.

Verbs for the operator of a store:
${listVerbs(operators ?? [])}

Verbs for callers:
${listVerbs(clients ?? [])}

Options of verbs for callers:
${listOptions(commonOptions)}

Options of verbs that call a server:
${listOptions(serverOptions)}

Exit codes:
${exitCodeLines.join("\n")}
`;
}

/** Describes the verbs of a group, one per line. */
export function describeGroup(verbs: readonly Verb[]): string {
  return `${listVerbs(verbs)}\n\nqsp VERB --help shows a verb with an example.\n`;
}

/** Describes one verb, with its example. */
export function describeVerb(verb: Verb): string {
  const own = listOptions(verb.options);
  const common = listOptions(verb.settings === undefined ? commonOptions : { help: commonOptions.help });
  const server = verb.isLocal ? "" : `\n\nServer and caller:\n${listOptions(serverOptions)}`;
  return `${describeUsage(verb)}

${verb.meaning}

Example:
${exampleLines(verb)}

Options:
${[own, common].filter((lines) => lines !== "").join("\n")}${server}${describeSettingsOf(verb)}

Exit codes:
${exitCodeLines.join("\n")}
`;
}

/** Describes the settings that matter most to the verb. */
function describeSettingsOf({ settings = {}, shownSettings, settingsHelp }: Verb): string {
  if (settingsHelp !== undefined) return `\n\n${settingsHelp}`;
  if (shownSettings === undefined) return "";
  const shown = Object.entries(settings).filter(([name]) => shownSettings.includes(name));
  return `\n\nSettings; qsp serve --help shows the others, and variables for all:\n${listOptions(Object.fromEntries(shown))}`;
}

function exampleLines({ example }: Verb): string {
  return example
    .split("\n")
    .map((line) => `  $ ${line}`)
    .join("\n");
}

function listVerbs(verbs: readonly Verb[]): string {
  return columns(
    verbs.map(({ name, operands, meaning }) => [[name, ...operands].join(" "), firstSentence(meaning)]),
  );
}

function listOptions(options: Options): string {
  return columns(
    Object.entries(options).map(([name, { value, meaning }]) => [
      `--${name}${value === undefined ? "" : ` ${value}`}`,
      meaning,
    ]),
  );
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join("\n");
}

function firstSentence(text: string): string {
  return /^.*?[.;:](?=\s|$)/s.exec(text)?.[0].replace(/[;:]$/, ".") ?? text;
}
