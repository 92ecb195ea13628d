/** Parses a verb's operands and options. */
import { parseArgs } from "node:util";
import { suggest } from "../../suggest.ts";
import { type CliError, usageError } from "../exit-codes.ts";
import type { FileUse, UsedFile } from "../files/uses.ts";

/** An option that a verb accepts. */
export interface Option {
  /** The placeholder for the value in the help; undefined for a flag. */
  readonly value?: string;
  readonly meaning: string;
  /** Whether the option may be repeated. */
  readonly isMany?: boolean;
  /** What the verb does with the file, if the value is a path. */
  readonly file?: FileUse;
  /** Whether the file holds a secret: it is written with mode 0600 and never printed to a terminal. */
  readonly isSecret?: boolean;
  /** The path to use if the option is omitted; undefined for none. */
  readonly defaultPath?: (line: VerbLine) => string | undefined;
  /** Shell completions of the value: file names, or these words. */
  readonly offers?: "files" | readonly string[];
}

/** Declares an option that takes a file to read. */
export const inputFile = (meaning: string) => ({ value: "FILE", meaning, file: "reads" }) as const;

/** Declares an option that takes a file to write. */
export const outputFile = (meaning: string) => ({ value: "FILE", meaning, file: "writes" }) as const;

/** Declares an option that takes a new file for a secret. */
export const secretFile = (meaning: string) =>
  ({ value: "FILE", meaning, file: "creates", isSecret: true }) as const;

/** Options by name, without dashes. */
export type Options = Readonly<Record<string, Option>>;

/** The command-line syntax of a verb. */
export interface OptionTaker {
  /** The words of the verb, such as "kms create". */
  readonly name: string;
  /** Operands as the help shows them: [NAME] is optional, NAME… is one or more, [NAME…] is any number. */
  readonly operands: readonly string[];
  readonly options: Options;
  /** How the verb uses files that operands name, by operand name without brackets. */
  readonly operandFiles?: Readonly<Record<string, FileUse>>;
  /** Files whose paths are derived from the operands. */
  readonly otherFiles?: (line: VerbLine) => readonly UsedFile[];
  /** Whether the verb works without a server. */
  readonly isLocal?: boolean;
  /** `qsp serve` settings, for verbs that take them instead of the client options. */
  readonly settings?: Options;
}

/** The options given on the command line. */
export interface ParsedOptions {
  text(name: string): string | undefined;
  /** @throws CliError if the option was not given */
  need(name: string): string;
  /**
   * Returns the only given option of several.
   *
   * @throws CliError unless exactly one was given
   */
  one<const Name extends string>(...names: readonly Name[]): { readonly name: Name; readonly value: string };
  flag(name: string): boolean;
  all(name: string): readonly string[];
  /** @throws CliError if the value is not a whole number in this range */
  whole(name: string, min: number, max: number): number | undefined;
}

/** Options of every verb. */
export const commonOptions = {
  json: { meaning: "Prints only the answer, as JSON in the REST form, one line each" },
  help: { meaning: "Prints this help" },
} as const satisfies Options;

/** Options of every verb that calls a server. */
export const serverOptions = {
  url: { value: "URL", meaning: "URL of the server; default: QSP_URL, then http://127.0.0.1:8080" },
  ca: inputFile(
    "CA certificate (PEM) to trust for https; default: QSP_CA, then the CA that qsp login stored",
  ),
  "token-file": inputFile("File with the token; default: QSP_TOKEN, then the token of qsp login"),
  timeout: {
    value: "SECONDS",
    meaning: "Time limit of a call, 1 to 86400; default: 30, no limit for streams",
  },
  cleartext: { meaning: "Allows sending the token or password over http to another machine" },
} as const satisfies Options;

/** Lists all options that a verb accepts. */
export function listOptions(verb: OptionTaker): Options {
  if (verb.settings !== undefined) return { ...verb.options, ...verb.settings, help: commonOptions.help };
  return { ...verb.options, ...(verb.isLocal ? {} : serverOptions), ...commonOptions };
}

/** The parsed command line of a verb. */
export interface VerbLine {
  readonly operands: readonly string[];
  readonly options: ParsedOptions;
}

/**
 * Parses the words after the verb.
 *
 * @throws CliError for an invalid command line
 */
export function readVerbLine(verb: OptionTaker, args: readonly string[]): VerbLine {
  const options = listOptions(verb);
  const types = Object.entries(options).map(([name, { value }]) => [
    name,
    { type: value === undefined ? ("boolean" as const) : ("string" as const), multiple: true },
  ]);
  const { tokens, positionals } = parseArgs({
    args: [...args],
    options: Object.fromEntries(types),
    // Not strict: we write our own error messages.
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    values.set(token.name, [
      ...(values.get(token.name) ?? []),
      readValue(options, token, args[token.index] ?? token.rawName),
    ]);
    if ((values.get(token.name)?.length ?? 0) > 1 && !options[token.name]?.isMany)
      throw usageError(`${token.rawName} occurs twice; use it once`);
  }
  const parsed = createParsedOptions(values, options);
  if (!parsed.flag("help")) checkOperands(verb, positionals);
  return { operands: positionals, options: parsed };
}

function readValue(
  options: Options,
  { name, rawName, value, inlineValue }: OptionToken,
  written: string,
): string {
  const option = Object.hasOwn(options, name) && rawName.startsWith("--") ? options[name] : undefined;
  if (option === undefined) throw unknownOption(Object.keys(options), written);
  if (option.value === undefined) {
    if (value !== undefined) throw usageError(`${rawName} takes no value`);
    return "";
  }
  const isAnotherOption = !inlineValue && value !== "-" && value?.startsWith("-");
  if (value === undefined || isAnotherOption)
    throw usageError(`${rawName} needs a value: ${rawName} ${option.value}`);
  if (option.offers === undefined || option.offers === "files") return value;
  // Enum values in protos are upper-case.
  return option.offers.find((word) => word.toLowerCase() === value.toLowerCase()) ?? value;
}

/** Maximum option names to list in one sentence. */
const maxNamed = 15;

/** What other tools call an option, and the options of ours that it may mean. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  output: ["out"],
  o: ["out"],
  "key-file": ["public-key", "device"],
  "public-key": ["key-file", "vendor-key"],
  pubkey: ["public-key"],
  host: ["url"],
  server: ["url"],
  address: ["url"],
  cacert: ["ca"],
  "ca-file": ["ca"],
  token: ["token-file"],
  alg: ["algorithm"],
  type: ["algorithm", "format"],
  sig: ["signature"],
  insecure: ["cleartext"],
  // The name in an older version.
  workers: ["reuse-port"],
};

/** @param written the word as typed: "--al", "-key", "--out=x" */
function unknownOption(names: readonly string[], written: string): CliError {
  const rawName = written.split("=", 1)[0] ?? "";
  const word = rawName.replace(/^-+/, "");
  const known = names.map((name) => `--${name}`);
  // Some tools start long options with a single dash.
  const candidates = [word, ...(Object.hasOwn(synonyms, word) ? (synonyms[word] ?? []) : [])];
  const meant = candidates.find((name) => names.includes(name));
  const similar =
    meant === undefined ? suggest(`--${word}`, known).filter((name) => name !== "--help") : [`--${meant}`];
  const list = known.length > maxNamed ? "--help lists the options" : `the options are ${known.join(", ")}`;
  const advice = similar.length > 0 ? `did you mean ${similar.join(" or ")}? --help lists the options` : list;
  return usageError(`${rawName} is not an option of this verb; ${advice}`);
}

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly index: number;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function checkOperands(verb: OptionTaker, operands: readonly string[]): void {
  const least = verb.operands.filter((operand) => !operand.startsWith("[")).length;
  if (operands.length < least)
    throw usageError(`${verb.operands[operands.length]} is missing; ${describeUsage(verb)}`);
  // Data may be an empty string.
  const empty = verb.operands
    .map((operand) => operand.replaceAll(/[[\]…]/g, ""))
    .find((operand, i) => operands[i] === "" && verb.operandFiles?.[operand] !== "data");
  if (empty !== undefined) throw usageError(`${empty} is empty; ${describeUsage(verb)}`);
  const isOpenEnded = /…\]?$/.test(verb.operands.at(-1) ?? "");
  if (operands.length > verb.operands.length && !isOpenEnded)
    throw usageError(
      `unexpected operand "${operands[verb.operands.length]}"; ${describeUsage(verb)}; qsp ${verb.name} --help lists the options`,
    );
}

/** Formats the usage line: "usage: qsp kms get KEY [options]". */
export function describeUsage(verb: OptionTaker): string {
  return `usage: ${["qsp", verb.name, ...verb.operands, "[options]"].join(" ")}`;
}

function createParsedOptions(
  values: ReadonlyMap<string, readonly string[]>,
  options: Options,
): ParsedOptions {
  const text = (name: string): string | undefined => values.get(name)?.[0];
  return {
    text,
    need(name) {
      const value = text(name);
      if (value !== undefined) return value;
      const { value: word = "", meaning = "" } = options[name] ?? {};
      throw usageError(`--${name} is missing; use --${name} ${word}: ${meaning}`);
    },
    one(...names) {
      const [given, ...others] = names.flatMap((name) => {
        const value = text(name);
        return value === undefined ? [] : [{ name, value }];
      });
      if (given !== undefined && others.length === 0) return given;
      const list = new Intl.ListFormat("en-GB").format(names.map((name) => `--${name}`));
      throw usageError(`use exactly one of ${list}`);
    },
    flag: (name) => values.has(name),
    all: (name) => values.get(name) ?? [],
    whole(name, min, max) {
      const value = text(name);
      if (value === undefined) return undefined;
      const number = Number(value);
      if (/^\d{1,16}$/.test(value) && number >= min && number <= max) return number;
      throw usageError(`--${name} "${value}" is not a whole number from ${min} to ${max}`);
    },
  };
}
