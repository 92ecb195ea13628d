/** A command-line verb and its input. */

import type { LoadPackages } from "../services/registry.ts";
import type { Options, OptionTaker, ParsedOptions } from "./command-line/options.ts";
import type { ApiClient } from "./connection/api-client.ts";
import type { CliError } from "./exit-codes.ts";
import type { VerbFiles } from "./files/open.ts";
import type { Output } from "./output/output.ts";

export interface Verb extends OptionTaker {
  readonly meaning: string;
  /** Description of the verb's group in the help; for groups of extensions. */
  readonly groupMeaning?: string | undefined;
  /** A command line that works as printed, given its files and variables. */
  readonly example: string;
  /** Names of the settings that the verb's help shows. */
  readonly shownSettings?: readonly string[];
  /** Replaces the list of settings in the help. */
  readonly settingsHelp?: string;
  /** Runs until it receives a signal, and handles signals itself. */
  readonly isService?: boolean;
  /** @returns the exit code, such as 1 if the answer is "no"; 0 by default */
  run(input: VerbInput): Promise<number | undefined>;
  /** Explains errors that only this verb throws; returns undefined for all others. */
  explain?(error: unknown): CliError | undefined;
}

/** How a verb is written down; `declareVerb` converts it to a `Verb`. */
export interface VerbDeclaration extends Omit<Verb, "name" | "operands" | "options" | "example"> {
  /** The verb with its operands, as the help shows them: "wallet sign WALLET-ID TRANSACTION". */
  readonly line: string;
  readonly options?: Options;
  /** Defaults to the bare verb. */
  readonly example?: string;
}

/** Creates a verb from its declaration. */
export function declareVerb({ line, options = {}, ...declared }: VerbDeclaration): Verb {
  const [, name = "", operands = ""] = /^([a-z -]+?)(?: ([A-Z[].*))?$/.exec(line) ?? [];
  return {
    example: `qsp ${name}`,
    ...declared,
    name,
    operands: operands.split(" ").filter(Boolean),
    options,
  };
}

export interface VerbInput {
  readonly operands: readonly string[];
  readonly options: ParsedOptions;
  /** The checked files of the verb, and the only way to write a file. */
  readonly files: VerbFiles;
  readonly output: Output;
  readonly server: ApiClient;
  /** Loads all verbs, for help and completion. */
  readonly loadAllVerbs: () => Promise<readonly Verb[]>;
  /** Loads the service packages, including extension packages. */
  readonly loadPackages: LoadPackages;
}

/**
 * Loads verbs by their first word, or by their first two words if they load separately from others with the same
 * first word. A file is loaded only when one of its verbs is needed.
 */
export type VerbTable = Readonly<Record<string, () => Promise<readonly Verb[]>>>;
