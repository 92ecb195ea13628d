/** Runs one command line. */

import { existsSync, readFileSync } from "node:fs";
import { commit, findProgramFile, helpFile, isCompiled, readVersion } from "../program-files.ts";
import type { LoadPackages } from "../services/registry.ts";
import { suggest } from "../suggest.ts";
import { describeSystemError } from "../system-error.ts";
import { listOptions, type ParsedOptions, readVerbLine } from "./command-line/options.ts";
import type { ApiClient } from "./connection/api-client.ts";
import { CliError, exitCodes, outputError, toCliError, usageError } from "./exit-codes.ts";
import { openFiles } from "./files/open.ts";
import { loadAllVerbs, loadGroup, loadVerb } from "./groups.ts";
import { colorHelp, colorText, createPaint } from "./output/colors.ts";
import { describeGroup, describeProgram, describeVerb } from "./output/help.ts";
import { createOutput } from "./output/output.ts";
import { reportError } from "./output/report-error.ts";
import type { Verb, VerbTable } from "./verb.ts";

/**
 * Runs a command line: a verb with its operands and options.
 *
 * @param loadPackages loads the packages whose calls the verbs know, for verbs that need them
 * @returns the exit code, once the verb has ended
 */
export async function runCommandLine(
  args: readonly string[],
  table: VerbTable,
  loadPackages: LoadPackages,
): Promise<number> {
  // Without a listener, a stderr error would end the program with a stack, and it could be reported nowhere.
  process.stderr.on("error", () => {});
  const watch = watchOutput(args);
  const exitCode = await runLine(args, table, loadPackages, watch).catch((error) => complain(error, args));
  await flush();
  const { failure } = watch;
  return failure === undefined || exitCode !== exitCodes.done ? exitCode : complain(failure, args);
}

/** Watches standard output for failures. */
interface OutputWatch {
  /** The first failure so far. */
  failure?: CliError;
  /** Whether a failure or a closed pipe ends the client. */
  endsAtOnce?: boolean;
  /** The exit code of the last answer. */
  exitCode?: number;
}

/** Detects lost output. */
function watchOutput(args: readonly string[]): OutputWatch {
  const watch: OutputWatch = {};
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // A reader that closed the pipe, like `head`, has all it needs.
    if (error.code !== "EPIPE") {
      const sentence = `standard output cannot be written: ${describeSystemError(error)}`;
      watch.failure ??= outputError(sentence, error);
    }
    const { failure, endsAtOnce, exitCode = exitCodes.done } = watch;
    // A "no" stays a "no", even if nobody reads it.
    if (endsAtOnce) process.exit(failure === undefined ? exitCode : complain(failure, args));
  });
  return watch;
}

/** @returns the exit code */
function complain(error: unknown, args: readonly string[]): number {
  return reportError(toCliError(error, "the server"), args);
}

/** Waits until all output is written, or its reader has closed the pipe. */
function flush(): Promise<void> {
  return new Promise((resolve) => {
    // Writes to a file have completed, but their error event may still be pending.
    if (process.stdout.writableLength === 0) return void setImmediate(resolve);
    process.stdout.once("error", () => resolve());
    process.stdout.write("", () => resolve());
  });
}

/** Treats -h as --help, as most tools do. */
function spellOut(args: readonly string[]): readonly string[] {
  const end = args.indexOf("--");
  return args.map((word, i) => (word === "-h" && (end < 0 || i < end) ? "--help" : word));
}

async function runLine(
  given: readonly string[],
  table: VerbTable,
  loadPackages: LoadPackages,
  watch: OutputWatch,
): Promise<number> {
  const args = spellOut(given);
  const [first = "help"] = args;
  const write = (text: string): void => void process.stdout.write(text);
  const paint = createPaint(process.stdout);
  if (first === "help" || first === "--help") {
    write(colorHelp(await describeTopic(args.slice(1), table), paint));
    return exitCodes.done;
  }
  if (first === "--version" || (first === "version" && args.length === 1)) {
    write(`${readVersion()}${commit && ` (${commit})`}\n`);
    return exitCodes.done;
  }
  const verb = await loadVerb(table, args);
  if (verb === undefined) {
    await requireVerbFirst(args, table);
    const group = await requireGroup(first, table);
    const asksHelp = args.includes("--help") || args[1] === "help";
    if (!asksHelp) throw unknownVerb(group, args, table);
    write(colorHelp(describeGroup(group), paint));
    return exitCodes.done;
  }
  // Operator verbs and services shut down through their own handlers. Their work must not depend on whether someone
  // reads their output, because the reader may leave early.
  if (verb.settings === undefined && !verb.isService) endAtOnce(args, watch);
  const line = readVerbLine(verb, args.slice(verb.name.split(" ").length));
  const { options } = line;
  if (options.flag("help")) {
    write(colorHelp(describeVerb(verb), paint));
    return exitCodes.done;
  }
  const files = openFiles(verb, line);
  // A file on standard output must not be mixed with other output.
  const [print, painted] = files.areOnStandardOutput
    ? [(text: string): void => void process.stderr.write(text), createPaint(process.stderr)]
    : [write, paint];
  const output = createOutput(
    options.flag("json"),
    print,
    (text) => colorText(text, painted),
    (exitCode) => {
      watch.exitCode = exitCode;
    },
  );
  const server = verb.isLocal
    ? undefined
    : (await import("./connection/api-client.ts")).createClient(options, verb.isService);
  try {
    const everyVerb = (): Promise<readonly Verb[]> => loadAllVerbs(table);
    const exitCode = await verb.run({
      ...{ ...line, files, output, loadAllVerbs: everyVerb, loadPackages },
      get server() {
        if (server === undefined) throw new Error("a verb that works without a server asked for one");
        return server;
      },
    });
    return exitCode ?? exitCodes.done;
  } catch (error) {
    const found =
      verb.explain?.(error) ?? (await explainCall(error, server)) ?? toCliError(error, server?.url ?? "");
    throw nameOption(found, options);
  } finally {
    server?.close();
  }
}

/** Names the option behind a field that the server refused: "--subject: …" instead of "subject: …". */
function nameOption(error: CliError, options: ParsedOptions): CliError {
  const { message, exitCode, refusal } = error;
  const [violation] = refusal?.fieldViolations ?? [];
  if (refusal === undefined || violation === undefined) return error;
  const { field } = violation;
  const option = field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  if (!options.flag(option) || !message.startsWith(`${field}: `)) return error;
  return new CliError(exitCode, `--${option}${message.slice(field.length)}`, { refusal });
}

/** Loaded on demand: successful calls do not need it. */
async function explainCall(error: unknown, server: ApiClient | undefined): Promise<CliError | undefined> {
  if (server === undefined || !(error instanceof Error && error.name === "ConnectError")) return undefined;
  return (await import("./connection/explain-connection.ts")).explainConnection(error, server);
}

/** Reads the prebuilt list of verbs, if the program was compiled. */
function readHelp(): string | undefined {
  const path = findProgramFile(helpFile);
  return isCompiled && existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

/** Ends the client when it is interrupted, and when the reader of its output closes the pipe. */
function endAtOnce(args: readonly string[], watch: OutputWatch): void {
  // An exit runs handlers that remove unfinished files.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => process.exit(exitCodes.interrupted));
  process.once("uncaughtException", (error) => process.exit(complain(error, args)));
  watch.endsAtOnce = true;
}

/** @throws CliError if options come before a verb, or between its words */
async function requireVerbFirst(args: readonly string[], table: VerbTable): Promise<void> {
  const option = args.slice(0, 2).find((arg) => arg.startsWith("-"));
  if (option === undefined || args.includes("--help")) return;
  const words = args.filter((arg) => !arg.startsWith("-")).slice(0, maxWords);
  // The value of an option counts as a word, too.
  const pairs = words.flatMap((word, i) => [...words.slice(i + 1), ""].map((other) => [word, other]));
  const verbs = await Promise.all(pairs.map((pair) => loadVerb(table, pair)));
  const verb = verbs.find((found) => found !== undefined);
  if (verb === undefined) return;
  const name = option.split("=", 1)[0] ?? "";
  const value = listOptions(verb)[name.slice(2)]?.value === undefined ? "" : " …";
  throw usageError(`put options after the verb: qsp ${verb.name} ${name}${value}`);
}

/** Maximum words in which to look for a verb. */
const maxWords = 6;

async function requireGroup(word: string, table: VerbTable): Promise<readonly Verb[]> {
  const verbs = await loadGroup(table, word);
  if (verbs.length > 0) return verbs;
  if (/^-+(v|version)$/i.test(word)) throw usageError(`${word} is not an option; did you mean --version?`);
  if (word.startsWith("-"))
    throw usageError(`${word} comes before the verb; put the verb first, for example qsp serve ${word}`);
  const [similar] = suggest(word, [...new Set(Object.keys(table).map((words) => words.split(" ")[0] ?? ""))]);
  const meant = similar === undefined ? await findByLastWord(word, table) : [similar];
  // British lists have no comma before the last item.
  const alternatives = new Intl.ListFormat("en-GB", { type: "disjunction" });
  const advice =
    meant.length === 0 ? "" : `did you mean ${alternatives.format(meant.map((name) => `"${name}"`))}? `;
  throw usageError(`"${word}" is not a verb; ${advice}qsp help lists the verbs`);
}

/** Finds the verbs that a word without its group may mean: "create", "ls". */
async function findByLastWord(word: string, table: VerbTable): Promise<string[]> {
  const wanted = word === "ls" ? "list" : word;
  const names = (await loadAllVerbs(table)).map(({ name }) => name);
  return names.filter((name) => name.split(" ")[1] === wanted).slice(0, 3);
}

function unknownVerb(verbs: readonly Verb[], args: readonly string[], table: VerbTable): CliError {
  const [group = "", word = ""] = args.filter((arg) => !arg.startsWith("-"));
  const words = `${group} ${word}`.trim();
  const names = verbs.map(({ name }) => name);
  const list = names.map((name) => name.slice(group.length + 1)).join(", ");
  if (word === "")
    return usageError(`${group} needs one of its verbs: ${list}; qsp help ${group} describes them`);
  // `qsp kms sign` means `qsp sign`.
  const [similar] = Object.hasOwn(table, word) ? [word] : suggest(words, names);
  const advice =
    similar === undefined
      ? `the verbs of ${group} are ${list}`
      : `did you mean "${similar}"? qsp help ${group} lists the verbs of ${group}`;
  return usageError(`"${words}" is not a verb; ${advice}`);
}

async function describeTopic(words: readonly string[], table: VerbTable): Promise<string> {
  const [first] = words;
  if (first === undefined || first.startsWith("-"))
    return readHelp() ?? describeProgram(await loadAllVerbs(table), "groups");
  if (first === "all") return describeProgram(await loadAllVerbs(table), "verbs");
  const verb = await loadVerb(table, words);
  if (verb !== undefined) return describeVerb(verb);
  const group = await requireGroup(first, table);
  if (words.length === 1) return describeGroup(group);
  throw unknownVerb(group, words, table);
}
