/** A verb of the command line, and its input. */

import type { LoadPackages } from "../services/registry.ts";
import type { Options, OptionTaker, ParsedOptions } from "./command-line/options.ts";
import type { ApiClient } from "./connection/api-client.ts";
import type { CliError } from "./exit-codes.ts";
import type { VerbFiles } from "./files/open.ts";
import type { Output } from "./output/output.ts";

/** One verb. */
export interface Verb extends OptionTaker {
  readonly meaning: string;
  /** What the help says of the verbs that begin with the same word, if they are those of an extension. */
  readonly groupMeaning?: string | undefined;
  /** A command line that works as printed, if its files and variables exist. */
  readonly example: string;
  /** The names of those settings that the help of the verb shows. */
  readonly shownSettings?: readonly string[];
  /** The help text that replaces the list of settings. */
  readonly settingsHelp?: string;
  /** Runs until a signal, and handles signals itself. */
  readonly isService?: boolean;
  /** @returns the exit code: 0, or 1 if the answer is "no" */
  run(input: VerbInput): Promise<number>;
  /** Explains errors that only this verb throws; undefined for all others. */
  explain?(error: unknown): CliError | undefined;
}

/** A verb as it is declared. */
export interface VerbDeclaration extends Omit<Verb, "name" | "operands" | "options" | "example"> {
  /** The verb with its operands, as the help shows them: "wallet sign WALLET-ID TRANSACTION". */
  readonly line: string;
  readonly options?: Options;
  /** By default the verb alone. */
  readonly example?: string;
}

/** Makes a verb of its declaration. */
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

/** The input of a verb. */
export interface VerbInput {
  readonly operands: readonly string[];
  readonly options: ParsedOptions;
  /** Its files, which are checked; the only way to write one. */
  readonly files: VerbFiles;
  readonly output: Output;
  readonly server: ApiClient;
  /** Loads all verbs, for the help and completion. */
  readonly loadAllVerbs: () => Promise<readonly Verb[]>;
  /** Loads the packages of services, those of extensions among them. */
  readonly loadPackages: LoadPackages;
}

/**
 * Loads verbs by their first word, or by their first two words if other verbs with the same first word load separately.
 * A file is loaded only when one of its verbs is needed.
 */
export type VerbTable = Readonly<Record<string, () => Promise<readonly Verb[]>>>;
