/** What a verb of the command line is, and what it is given. */

import type { ApiClient } from "./client.ts";
import type { CliError } from "./exit-codes.ts";
import type { OptionTaker, ParsedOptions } from "./options.ts";
import type { Output } from "./output.ts";

/** One verb. */
export interface Verb extends OptionTaker {
  readonly meaning: string;
  /** A command line that works as it stands, where its files and variables are there. */
  readonly example: string;
  /** The names of those settings that the help of the verb shows. */
  readonly shownSettings?: readonly string[];
  /** What the help says of the settings instead. */
  readonly settingsHelp?: string;
  /** @returns the exit code: 0, or 1 if the answer is "no" */
  run(input: VerbInput): Promise<number>;
  /** Explains errors that only this verb throws; undefined for all others. */
  explain?(error: unknown): CliError | undefined;
}

/** What a verb is given. */
export interface VerbInput {
  readonly operands: readonly string[];
  readonly options: ParsedOptions;
  readonly output: Output;
  readonly server: ApiClient;
  /** Loads all verbs, for what is made of them. */
  readonly loadAllVerbs: () => Promise<readonly Verb[]>;
}

/**
 * Loads verbs, by the words that they begin with: one word, or two where other verbs have the same first word and
 * are loaded apart from these. No file is loaded before one of its verbs is needed.
 */
export type VerbTable = Readonly<Record<string, () => Promise<readonly Verb[]>>>;
