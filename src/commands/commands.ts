/** The operator's commands, beside serving. */
import { ConfigError } from "../config.ts";
import { auditVerify } from "./audit-verify.ts";
import { backup, restore } from "./backup.ts";
import { chainVerify } from "./chain-verify.ts";
import type { Command } from "./command.ts";
import { masterKeyRotate } from "./master-key-rotate.ts";

const commands: readonly Command[] = [auditVerify, chainVerify, backup, restore, masterKeyRotate];

/** A command that was asked for, with its operands and the settings after it. */
export interface CommandLine {
  readonly command: Command;
  readonly operands: readonly string[];
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
    if (operands.length < least || operands.length > command.operands.length)
      throw new ConfigError(`usage: qsp ${[...name, ...command.operands].join(" ")} [settings]`);
    return { command, operands, flags };
  }
  const known = commands.map(({ name }) => `"${name}"`).join(", ");
  throw new ConfigError(`"${words.join(" ")}" is no command; known are ${known}, and none at all to serve`);
}

/** The commands as `--help` shows them. */
export function describeCommands(): string {
  return commands
    .map(({ name, operands, meaning }) => `  ${[name, ...operands].join(" ").padEnd(32)} ${meaning}`)
    .join("\n");
}
