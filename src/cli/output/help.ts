/** Formats the texts of `--help` and `qsp help`. */

import type { Options } from "../command-line/options.ts";
import { commonOptions, describeUsage, serverOptions } from "../command-line/options.ts";
import { exitCodeMeanings } from "../exit-codes.ts";
import type { Verb } from "../verb.ts";

const exitCodeLines = exitCodeMeanings.map(([code, meaning]) => `  ${String(code).padEnd(4)}${meaning}`);

/** Descriptions of the core's verb groups. Verbs without a group have one line each. */
const groupMeanings: Readonly<Record<string, string>> = {
  audit: "Verifies the audit log and the identity log, and lists logins.",
  store: "Creates a store and verifies its content.",
  "master-key":
    "Rotates the master key, splits it into shares for a backup on paper, and restores it from them.",
  user: "Adds, lists and removes users, and sets passwords.",
  client: "Adds, lists and removes OAuth 2 clients, and replaces their secrets.",
  ca: "Runs a private CA that issues server certificates.",
  kms: "Manages server-held keys: creates, imports, rotates, shares and destroys them, and lists their uses.",
  identity: "Shows auditors who logged in and how users and clients changed.",
  device: "Registers and authenticates a device, and sends its readings and firmware.",
  tunnel: "Connects to the VPN gateway and sends packets.",
  wallet: "Creates wallets, signs transactions and verifies them.",
  chain: "Adds, lists, verifies and watches blocks of the blockchain.",
  nft: "Mints, shows, transfers and verifies tokens.",
  multisig: "Creates and lists multi-signature wallets.",
  proposal: "Creates, signs and executes proposals of multi-signature wallets.",
};

/** Lists all verbs, with one line per group or per verb. */
export function describeProgram(verbs: readonly Verb[], lines: "groups" | "verbs"): string {
  const list = lines === "groups" ? listGroups : listVerbs;
  const [operators, clients] = [true, false].map((takes) =>
    verbs.filter(({ settings }) => (settings !== undefined) === takes),
  );
  return `usage: qsp VERB [operands] [options]

Serves post-quantum cryptography over gRPC, gRPC-Web, Connect and REST, and calls such a server.
qsp help VERB shows a verb with an example, or the verbs of a group; qsp help all lists every verb;
qsp serve --help shows the settings; qsp version shows the version.

Verbs for the operator of a store:
${list(operators ?? [])}

Verbs for callers:
${list(clients ?? [])}

Options of verbs for callers:
${listOptions(commonOptions)}

Options of verbs that call a server:
${listOptions(serverOptions)}

Exit codes:
${exitCodeLines.join("\n")}
`;
}

/** Lists the verbs of a group, one per line. */
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

/** Describes the settings most relevant to the verb. */
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
  return columns(listRows(verbs));
}

function listRows(verbs: readonly Verb[]) {
  return verbs.map(
    ({ name, operands, meaning }) => [[name, ...operands].join(" "), firstSentence(meaning)] as const,
  );
}

/** Lists verbs, with one line for all that share a first word. */
function listGroups(verbs: readonly Verb[]): string {
  const groups = Object.entries(Object.groupBy(verbs, ({ name }) => name.split(" ")[0] ?? ""));
  const lines = groups.map(([word, members = []]) => {
    const [first] = members;
    const meaning = members.length > 1 ? (first?.groupMeaning ?? groupMeanings[word]) : undefined;
    return meaning === undefined ? listRows(members) : [[`${word} …`, meaning] as const];
  });
  return columns(lines.flat());
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
  const sentence = /^.*?[.;:](?=\s|$)/s.exec(text)?.[0].replace(/[;:]$/, ".") ?? text;
  return sentence.replaceAll("\n", " ");
}
