/** What a verb of the client is, and what it is given. */
import type { Given } from "./given.ts";
import type { Output } from "./output.ts";
import type { Server } from "./server.ts";

/** An option of a verb. */
export interface Option {
  /** Stands in the help for the value; a flag has none. */
  readonly value?: string;
  readonly meaning: string;
  /** May be given more than once. */
  readonly isMany?: boolean;
  /** What completion offers for the value: the names of files, or these words. */
  readonly offers?: "files" | readonly string[];
}

/** Options by their names, without the dashes. */
export type Options = Readonly<Record<string, Option>>;

/** One verb of the client. */
export interface Verb {
  /** Its words, such as "kms create". */
  readonly name: string;
  /** Names of its operands, as the help shows them: [NAME] may be missing. */
  readonly operands: readonly string[];
  readonly options: Options;
  readonly meaning: string;
  /** A command line that works as it stands, where its files and variables are there. */
  readonly example: string;
  /** Works without a server. */
  readonly isLocal?: boolean;
  /** @returns the exit code: 0, or 1 if the answer is "no" */
  run(input: VerbInput): Promise<number>;
}

/** What a verb is given. */
export interface VerbInput {
  readonly operands: readonly string[];
  readonly given: Given;
  readonly output: Output;
  readonly server: Server;
}
