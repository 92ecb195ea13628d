/** What `--help` and `qsp help` print. */
import { exitCodeMeanings } from "./exit-codes.ts";
import type { Options } from "./options.ts";
import { commonOptions, describeUsage, serverOptions } from "./options.ts";
import type { Verb } from "./verb.ts";

const exitCodeLines = exitCodeMeanings.map(([code, meaning]) => `  ${String(code).padEnd(4)}${meaning}`);

/** All verbs, a line each. */
export function describeVerbs(verbs: readonly Verb[]): string {
  return `usage: qsp VERB [operands] [options]

Calls a server of post-quantum cryptography. qsp VERB --help shows a verb with an example.

${listVerbs(verbs)}

Options of all verbs:
${listOptions(commonOptions)}

Options of verbs that call a server:
${listOptions(serverOptions)}

Exit codes:
${exitCodeLines.join("\n")}

The operator's commands, and how to serve: qsp --help
`;
}

/** The verbs of a group, a line each. */
export function describeGroup(verbs: readonly Verb[]): string {
  return `${listVerbs(verbs)}\n\nqsp VERB --help shows a verb with an example.\n`;
}

/** One verb, with its example. */
export function describeVerb(verb: Verb): string {
  const own = listOptions(verb.options);
  const server = verb.isLocal ? "" : `\n\nWhich server, and who calls:\n${listOptions(serverOptions)}`;
  return `${describeUsage(verb)}

${verb.meaning}

Example:
${exampleLines(verb)}

Options:
${[own, listOptions(commonOptions)].filter((lines) => lines !== "").join("\n")}${server}

Exit codes:
${exitCodeLines.join("\n")}
`;
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
