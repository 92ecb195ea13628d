/** Runs one command line of the client. */

import { type ApiClient, createClient, readUrl } from "./client.ts";
import { type CliError, exitCodes, toCliError, usageError } from "./exit-codes.ts";
import { type GroupName, groups, loadAllVerbs, loadGroup } from "./groups.ts";
import { describeGroup, describeVerb, describeVerbs } from "./help.ts";
import { readVerbLine } from "./options.ts";
import { createOutput, harmless } from "./output.ts";
import { suggest } from "./suggest.ts";
import type { Verb } from "./verb.ts";

/**
 * Runs a command line whose first word is the client's.
 *
 * @returns the exit code
 */
export async function runClient(args: readonly string[]): Promise<number> {
  process.once("SIGINT", () => process.exit(exitCodes.interrupted));
  process.once("uncaughtException", (error) => process.exit(complain(error)));
  // The reader of a pipe that has enough, as `head`, is no fault.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(exitCodes.done);
    throw error;
  });
  const exitCode = await runLine(args).catch(complain);
  await new Promise((resolve) => process.stdout.write("", resolve));
  return exitCode;
}

/** Says in one sentence what went wrong. @returns the exit code */
function complain(error: unknown): number {
  const { message, exitCode } = toCliError(error, "the server");
  process.stderr.write(`qsp: ${harmless(message).replaceAll("\n", " ")}\n`);
  return exitCode;
}

async function runLine(args: readonly string[]): Promise<number> {
  const [first = "help"] = args;
  const write = (text: string): void => void process.stdout.write(text);
  if (first === "help") {
    write(await describeTopic(args.slice(1)));
    return exitCodes.done;
  }
  const verbs = await loadGroup(toGroupName(first));
  const verb = findVerb(verbs, args);
  if (verb === undefined) {
    if (args.includes("--help")) {
      write(describeGroup(verbs));
      return exitCodes.done;
    }
    throw unknownVerb(verbs, args);
  }
  const { operands, given } = readVerbLine(verb, args.slice(verb.name.split(" ").length));
  if (given.flag("help")) {
    write(describeVerb(verb));
    return exitCodes.done;
  }
  const output = createOutput(given.flag("json"), write);
  const server = verb.isLocal ? noServer : createClient(given);
  try {
    return await verb.run({ operands, given, output, server });
  } catch (error) {
    throw toCliError(error, verb.isLocal ? "" : readUrl(given));
  } finally {
    server.close();
  }
}

/** The verb whose words the line begins with; no verb's words begin another's. */
function findVerb(verbs: readonly Verb[], args: readonly string[]): Verb | undefined {
  return verbs.find(({ name }) => name.split(" ").every((word, i) => args[i] === word));
}

function unknownVerb(verbs: readonly Verb[], args: readonly string[]): CliError {
  const words = args
    .filter((arg) => !arg.startsWith("-"))
    .slice(0, 2)
    .join(" ");
  const names = verbs.map(({ name }) => name);
  const [near] = suggest(words, names);
  return usageError(
    `"${words}" is no verb${near === undefined ? "" : `; did you mean "${near}"`}; known are ${names.join(", ")}`,
  );
}

async function describeTopic(words: readonly string[]): Promise<string> {
  const [first] = words;
  if (first === undefined || first.startsWith("-")) return describeVerbs(await loadAllVerbs());
  const verbs = await loadGroup(toGroupName(first));
  const verb = findVerb(verbs, words);
  return verb === undefined ? describeGroup(verbs) : describeVerb(verb);
}

function toGroupName(word: string): GroupName {
  if (isGroupName(word)) return word;
  throw usageError(`"${word}" is no verb; qsp help lists them`);
}

function isGroupName(word: string): word is GroupName {
  return Object.hasOwn(groups, word);
}

function refuseServer(): never {
  throw new Error("a verb that works without a server asked for one");
}

/** What a verb is given that works without a server. */
const noServer: ApiClient = {
  url: "",
  ask: refuseServer,
  // biome-ignore lint/correctness/useYield: it never comes to that
  stream: async function* () {
    refuseServer();
  },
  withToken: refuseServer,
  requirePrivacy: refuseServer,
  close: () => {},
};
