/** The operator's commands, beside serving. */
import { ConfigError } from "../../config.ts";
import { auditVerify } from "./audit-verify.ts";
import { backup } from "./backup.ts";
import { caInit, caIssue } from "./ca.ts";
import { chainVerify } from "./chain-verify.ts";
import type { Command, CommandOption } from "./command.ts";
import { issuerRotate } from "./issuer-rotate.ts";
import { masterKeyRotate } from "./master-key-rotate.ts";
import { restore } from "./restore.ts";
import { storeVerify } from "./store-verify.ts";
import { userAdd, userList, userPasswd, userRemove } from "./users.ts";

const commands: readonly Command[] = [
  auditVerify,
  storeVerify,
  chainVerify,
  backup,
  restore,
  masterKeyRotate,
  issuerRotate,
  userAdd,
  userPasswd,
  userRemove,
  userList,
  caInit,
  caIssue,
];

/** A command that was asked for, with its operands and the settings after it. */
export interface CommandLine {
  /** Knows its own options already. */
  readonly command: Command;
  readonly operands: readonly string[];
  /** The settings. */
  readonly flags: readonly string[];
}

/**
 * Reads a command line: the words of a command, its operands, then settings.
 *
 * @returns undefined if there is no command, which means to serve.
 * @throws ConfigError
 */
export function readCommandLine(args: readonly string[]): CommandLine | undefined {
  const firstFlag = args.findIndex((arg) => arg.startsWith("-"));
  const words = firstFlag < 0 ? args : args.slice(0, firstFlag);
  const flags = firstFlag < 0 ? [] : args.slice(firstFlag);
  if (words.length === 0) return undefined;
  for (const command of commands) {
    const name = command.name.split(" ");
    if (name.some((word, i) => words[i] !== word)) continue;
    const operands = words.slice(name.length);
    const least = command.operands.filter((operand) => !operand.startsWith("[")).length;
    const most = command.operands.at(-1)?.endsWith("…") ? Number.POSITIVE_INFINITY : command.operands.length;
    if (operands.length < least || operands.length > most)
      throw new ConfigError(`usage: qsp ${[...name, ...command.operands].join(" ")} [settings]`);
    const { options, settings } = takeOptions(command.options ?? [], flags);
    return {
      command: { ...command, run: (input) => command.run({ ...input, options }) },
      operands,
      flags: settings,
    };
  }
  throw new ConfigError(
    `"${words.join(" ")}" is no command; qsp --help lists those for the operator, qsp help those for callers`,
  );
}

/** Parts a command's own options from the settings, which all commands have. */
function takeOptions(known: readonly CommandOption[], flags: readonly string[]) {
  const options = Object.fromEntries(known.map(({ name, fallback }) => [name, fallback]));
  const settings: string[] = [];
  for (let i = 0; i < flags.length; i += 1) {
    const flag = flags[i] ?? "";
    const [, name, inline] = /^--([^=]+)(?:=(.*))?$/s.exec(flag) ?? [];
    const option = known.find((candidate) => candidate.name === name);
    if (option === undefined) {
      settings.push(flag);
      continue;
    }
    if (inline === undefined) i += 1;
    const value = inline ?? flags[i];
    if (value === undefined || (inline === undefined && value.startsWith("-")))
      throw new ConfigError(`--${option.name} needs a value; say --${option.name} <${option.valueName}>`);
    options[option.name] = value;
  }
  return { options, settings };
}

/** The commands as `--help` shows them. */
export function describeCommands(): string {
  return commands
    .flatMap(({ name, operands, meaning, options = [] }) => [
      `  ${[name, ...operands].join(" ").padEnd(32)} ${meaning}`,
      ...options.map(
        (option) =>
          `  ${`  --${option.name} <${option.valueName}>`.padEnd(32)} ${option.meaning} (${option.fallback})`,
      ),
    ])
    .join("\n");
}
