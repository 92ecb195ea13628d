/** What a verb of the client is, and what it is given. */

import type { ApiClient } from "./client.ts";
import type { OptionTaker, ParsedOptions } from "./options.ts";
import type { Output } from "./output.ts";

/** One verb of the client. */
export interface Verb extends OptionTaker {
  readonly meaning: string;
  /** A command line that works as it stands, where its files and variables are there. */
  readonly example: string;
  /** @returns the exit code: 0, or 1 if the answer is "no" */
  run(input: VerbInput): Promise<number>;
}

/** What a verb is given. */
export interface VerbInput {
  readonly operands: readonly string[];
  readonly given: ParsedOptions;
  readonly output: Output;
  readonly server: ApiClient;
}
