import type { Config } from "../config.ts";
import type { DatabaseLocation } from "../storage/database.ts";
import type { MasterKeySource } from "../storage/master-key.ts";

/** What a command is given. */
export interface CommandInput {
  /** The words after its name. */
  readonly operands: readonly string[];
  readonly config: Config;
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
}

/** One of the operator's commands. */
export interface Command {
  /** Its words, such as "audit verify". */
  readonly name: string;
  /** Names of its operands, as the help shows them. */
  readonly operands: readonly string[];
  readonly meaning: string;
  /** @returns the exit code: 0, or 1 if what it looked at is not in order */
  run(input: CommandInput): Promise<number>;
}
