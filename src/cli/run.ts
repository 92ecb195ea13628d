/** Runs one command line. */

import { existsSync, readFileSync } from "node:fs";
import { findProgramFile, helpFile, isCompiled, readVersion } from "../program-files.ts";
import type { ApiClient } from "./client.ts";
import { type CliError, exitCodes, toCliError, usageError } from "./exit-codes.ts";
import { loadAllVerbs, loadGroup, loadVerb } from "./groups.ts";
import { describeGroup, describeVerb, describeVerbs } from "./help.ts";
import { readVerbLine } from "./options.ts";
import { createOutput, harmless } from "./output.ts";
import { suggest } from "./suggest.ts";
import type { Verb, VerbTable } from "./verb.ts";

/**
 * Runs a command line: a verb with its operands and options.
 *
 * @returns the exit code, once the verb has ended
 */
export async function runCommandLine(args: readonly string[], table: VerbTable): Promise<number> {
  const exitCode = await runLine(args, table).catch(complain);
  await flush();
  return exitCode;
}

/** Prints one sentence about an error. @returns the exit code */
function complain(error: unknown): number {
  const { message, exitCode, cause } = toCliError(error, "the server");
  process.stderr.write(`qsp: ${harmless(message).replaceAll("\n", " ")}\n`);
  if (cause instanceof Error) process.stderr.write(`${cause.stack}\n`);
  return exitCode;
}

/** Waits until all output is written, or its reader is gone. */
function flush(): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.once("error", () => resolve());
    process.stdout.write("", () => resolve());
  });
}

async function runLine(args: readonly string[], table: VerbTable): Promise<number> {
  const [first = "help"] = args;
  const write = (text: string): void => void process.stdout.write(text);
  if (first === "help" || first === "--help") {
    write(await describeTopic(args.slice(1), table));
    return exitCodes.done;
  }
  if (first === "--version") {
    write(`${readVersion()}\n`);
    return exitCodes.done;
  }
  const verb = await loadVerb(table, args);
  if (verb === undefined) {
    const group = await requireGroup(first, table);
    if (!args.includes("--help")) throw unknownVerb(group, args);
    write(describeGroup(group));
    return exitCodes.done;
  }
  // The operator's verbs and services shut down with their own handlers.
  if (verb.settings === undefined && !verb.isService) endAtOnce();
  const { operands, options } = readVerbLine(verb, args.slice(verb.name.split(" ").length));
  if (options.flag("help")) {
    write(describeVerb(verb));
    return exitCodes.done;
  }
  const output = createOutput(options.flag("json"), write);
  const server = verb.isLocal
    ? noServer
    : (await import("./client.ts")).createClient(options, { isLongLived: verb.isService });
  try {
    const everyVerb = (): Promise<readonly Verb[]> => loadAllVerbs(table);
    return await verb.run({ operands, options, output, server, loadAllVerbs: everyVerb });
  } catch (error) {
    throw verb.explain?.(error) ?? toCliError(error, server.url);
  } finally {
    server.close();
  }
}

/** Reads the list of verbs where the program was compiled. */
function readHelp(): string | undefined {
  const path = findProgramFile(helpFile);
  return isCompiled && existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

/** Ends the client when it is interrupted, and when the reader of its output closes the pipe. */
function endAtOnce(): void {
  process.once("SIGINT", () => process.exit(exitCodes.interrupted));
  process.once("uncaughtException", (error) => process.exit(complain(error)));
  // `head` does this; it is not an error.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(exitCodes.done);
    throw error;
  });
}

async function requireGroup(word: string, table: VerbTable): Promise<readonly Verb[]> {
  const verbs = await loadGroup(table, word);
  if (verbs.length > 0) return verbs;
  if (word.startsWith("-"))
    throw usageError(`${word} is before the verb; put the verb first, such as qsp serve ${word}`);
  const [similar] = suggest(word, [...new Set(Object.keys(table).map((words) => words.split(" ")[0] ?? ""))]);
  const advice = similar === undefined ? "" : `; did you mean "${similar}"`;
  throw usageError(`"${word}" is not a verb${advice}; qsp help lists the verbs`);
}

function unknownVerb(verbs: readonly Verb[], args: readonly string[]): CliError {
  const words = args
    .filter((arg) => !arg.startsWith("-"))
    .slice(0, 2)
    .join(" ");
  const names = verbs.map(({ name }) => name);
  const [similar] = suggest(words, names);
  return usageError(
    `"${words}" is not a verb${similar === undefined ? "" : `; did you mean "${similar}"`}; the verbs are ${names.join(", ")}`,
  );
}

async function describeTopic(words: readonly string[], table: VerbTable): Promise<string> {
  const [first] = words;
  if (first === undefined || first.startsWith("-"))
    return readHelp() ?? describeVerbs(await loadAllVerbs(table));
  const verb = await loadVerb(table, words);
  return verb === undefined ? describeGroup(await requireGroup(first, table)) : describeVerb(verb);
}

function throwNoServer(): never {
  throw new Error("a verb that works without a server asked for one");
}

/** The client of verbs that work without a server. */
const noServer: ApiClient = {
  url: "",
  ask: throwNoServer,
  // biome-ignore lint/correctness/useYield: it never comes to that
  stream: async function* () {
    throwNoServer();
  },
  withToken: throwNoServer,
  requirePrivacy: throwNoServer,
  close: () => {},
};
