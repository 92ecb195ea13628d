/** Verbs for the logs of keys and of identities: they list entries, or show new ones as they come. */
import type {
  DescMessage,
  DescMethodServerStreaming,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { type Listing, toCells } from "./call-verbs.ts";
import { oneOf } from "./client.ts";
import { exitCodes, usageError } from "./exit-codes.ts";
import type { Options, ParsedOptions } from "./options.ts";
import type { VerbInput } from "./verb.ts";

/** The options that select entries. */
export const entryFilterOptions = (operations: readonly string[], user: string) =>
  ({
    operation: { value: "NAME", meaning: "Only entries of this operation", offers: operations },
    outcome: { value: "OUTCOME", meaning: "Only entries with this outcome", offers: ["OK", "REFUSED"] },
    user: { value: "USER", meaning: `Only entries of ${user}` },
    from: {
      value: "TIME",
      meaning: "Only entries from this time on: 2030-01-31T12:00:00Z, or 12h for the last 12 hours",
    },
    to: { value: "TIME", meaning: "Only entries before this time" },
    watch: { meaning: "Shows new entries until interrupted" },
  }) as const satisfies Options;

export const afterOption = {
  after: { value: "SEQUENCE", meaning: "With --watch, begins after this entry; 0 begins with the first" },
} as const satisfies Options;

/** Reads the filters of both logs, but for times. */
export function readEntryFilter(options: ParsedOptions) {
  return {
    operation: options.text("operation") ?? "",
    outcome: options.text("outcome") ?? "",
    user: options.text("user") ?? "",
  };
}

/** @throws CliError for an option of a watch without one */
export function refuseAfter(options: ParsedOptions): void {
  if (options.text("after") !== undefined) throw usageError("--after needs --watch");
}

/** Shows entries until interrupted. @param entryOf takes the entry out of a message of the stream */
export async function watchEntries<I extends DescMessage, O extends DescMessage, Entry extends object>(
  method: DescMethodServerStreaming<I, O>,
  { options, output, server }: VerbInput,
  request: MessageInitShape<I>,
  entryOf: (answer: MessageShape<O>) => Entry | undefined,
  columns: Listing<unknown, Entry>["columns"],
): Promise<number> {
  const afterSequence = options.whole("after", 0, Number.MAX_SAFE_INTEGER);
  const requests = oneOf({ ...request, ...(afterSequence !== undefined && { afterSequence }) });
  for await (const answer of server.stream(method, requests)) {
    const entry = entryOf(answer);
    if (entry !== undefined) output.answer(method.output, answer, () => toCells(entry, columns).join("  "));
  }
  return exitCodes.done;
}
