import type { Config } from "../../config.ts";
import type { DatabaseLocation } from "../../database/database.ts";
import type { MasterKeySource } from "../../secrets/master-key.ts";

/** What a command is given. */
export interface CommandInput {
  /** The words after its name. */
  readonly operands: readonly string[];
  /** Its own options by name: what was given, or the default. */
  readonly options?: Readonly<Record<string, string>>;
  readonly config: Config;
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
}

/** A flag of one command alone, with a value. */
export interface CommandOption {
  /** Without the dashes. */
  readonly name: string;
  /** Stands in the help for the value. */
  readonly valueName: string;
  /** The default as a person would type it. */
  readonly fallback: string;
  readonly meaning: string;
}

/** One of the operator's commands. */
export interface Command {
  /** Its words, such as "audit verify". */
  readonly name: string;
  /** Names of its operands, as the help shows them: [NAME] may be missing, NAME… is one or more. */
  readonly operands: readonly string[];
  readonly options?: readonly CommandOption[];
  readonly meaning: string;
  /** @returns the exit code: 0, or 1 if what it looked at is not in order */
  run(input: CommandInput): Promise<number>;
}
