/** Verbs for the audit and identity logs: they list entries, or follow new ones. */
import type {
  DescField,
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { listAccepted } from "../calls/accepted-values.ts";
import { type Listing, printList, printStream } from "./call-verbs.ts";
import type { Options, ParsedOptions } from "./command-line/options.ts";
import { readTime } from "./command-line/time-options.ts";
import { usageError } from "./exit-codes.ts";
import { declareVerb, type Verb, type VerbDeclaration } from "./verb.ts";

/** Declares a log verb. */
interface LogDeclaration<
  I extends DescMessage,
  O extends DescMessage,
  WatchI extends DescMessage,
  WatchO,
  Entry,
> extends Pick<VerbDeclaration, "line" | "meaning" | "example" | "options">,
    Pick<Listing<MessageShape<O>, Entry>, "items" | "columns"> {
  /** What --user selects, such as "this user". */
  readonly user: string;
  /** Builds the request for the entries of a subject; "" means all. */
  ask(subject: string, filter: EntryFilter): MessageInitShape<I> & MessageInitShape<WatchI>;
  /** Extracts the entry from a stream message. */
  entryOf(answer: WatchO): Entry | undefined;
}

type EntryFilter = ReturnType<typeof readFilter>;

/** Declares a verb that lists log entries, and follows new ones with --watch. */
export function entryLogVerb<
  I extends DescMessage,
  O extends DescMessage,
  WatchI extends DescMessage,
  WatchO extends DescMessage,
  Entry extends object,
>(
  list: DescMethodUnary<I, O>,
  watch: DescMethodServerStreaming<WatchI, WatchO>,
  log: LogDeclaration<I, O, WatchI, MessageShape<WatchO>, Entry>,
): Verb {
  const { user, ask, items, entryOf, columns, options: own, ...declared } = log;
  return declareVerb({
    ...declared,
    options: { ...filterOptions(list.input.field.operation, user), ...own, ...orderOptions },
    async run(input) {
      const { operands, options } = input;
      const [subject = ""] = operands;
      const isWatch = options.flag("watch") || options.flag("follow");
      if (!isWatch && options.flag("after")) throw usageError("--after needs --watch");
      const newestFirst = options.flag("newest-first");
      const timed = ["from", "to"].find((name) => options.flag(name) && !(name in watch.input.field));
      const listed = newestFirst ? "newest-first" : timed;
      if (isWatch && listed !== undefined) throw usageError(`--${listed} cannot be combined with --watch`);
      const request = ask(subject, readFilter(options));
      if (!isWatch)
        return printList(
          list,
          input,
          { ...request, newestFirst },
          { items, none: "There are no entries.", columns },
        );
      const afterSequence = options.whole("after", 0, Number.MAX_SAFE_INTEGER);
      const after = { ...request, ...(afterSequence !== undefined && { afterSequence }) };
      return printStream(watch, input, after, columns, entryOf);
    },
  });
}

function filterOptions(operation: DescField | undefined, user: string): Options {
  const offers = operation === undefined ? [] : listAccepted(operation);
  return {
    operation: { value: "NAME", meaning: "Only entries of this operation", offers },
    outcome: { value: "OUTCOME", meaning: "Only entries with this outcome", offers: ["OK", "REFUSED"] },
    user: { value: "USER", meaning: `Only entries of ${user}` },
    from: {
      value: "TIME",
      meaning: "Only entries from this time on: 2030-01-31T12:00:00Z, or 12h for the last 12 hours",
    },
    to: { value: "TIME", meaning: "Only entries before this time" },
    watch: { meaning: "Shows new entries until interrupted" },
  };
}

const orderOptions: Options = {
  "newest-first": { meaning: "Lists the newest entry first" },
  after: { value: "SEQUENCE", meaning: "With --watch, begins after this entry; 0 begins with the first" },
};

function readFilter(options: ParsedOptions) {
  const [from, to] = [readTime(options, "from", -1), readTime(options, "to", -1)];
  return {
    operation: options.text("operation") ?? "",
    outcome: options.text("outcome") ?? "",
    user: options.text("user") ?? "",
    ...(from && { from }),
    ...(to && { to }),
  };
}
