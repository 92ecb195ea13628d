/** Declares verbs that make one API call: how to build the request and how to print the answer. */
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { askPages, oneOf } from "./connection/api-client.ts";
import { exitCodes } from "./exit-codes.ts";
import { facts, table, time } from "./output/output.ts";
import { declareVerb, type Verb, type VerbDeclaration, type VerbInput } from "./verb.ts";

/** Fields that every declaration has. */
interface Declaration<I extends DescMessage>
  extends Pick<VerbDeclaration, "line" | "meaning" | "example" | "options" | "operandFiles"> {
  /** Builds the request from the command line; empty by default. */
  ask?(input: VerbInput): MessageInitShape<I> | Promise<MessageInitShape<I>>;
}

async function readRequest<I extends DescMessage>(
  ask: Declaration<I>["ask"],
  input: VerbInput,
): Promise<MessageInitShape<I>> {
  // Every request message may be empty.
  return (await ask?.(input)) ?? ({} as MessageInitShape<I>);
}

/** Labels and values to print; empty and undefined values are left out. */
type Facts = Readonly<Record<string, string | undefined>>;

/** A verb that prints one answer. */
interface UnaryDeclaration<I extends DescMessage, O extends DescMessage> extends Declaration<I> {
  /** Fields of the answer to write to files, by option name. */
  readonly writes?: Readonly<Record<string, (answer: MessageShape<O>) => string | Uint8Array>>;
  /**
   * Formats the answer as text.
   *
   * @param files names of the written files, by option name
   */
  say(
    answer: MessageShape<O>,
    input: VerbInput,
    files: Readonly<Record<string, string | undefined>>,
  ): string | Facts;
  /** Runs after files are written and before the answer is printed; may modify the answer. */
  finish?(answer: MessageShape<O>, input: VerbInput): void;
  /** Returns whether the answer is yes (exit code 0) or no (exit code 1). */
  isYes?(answer: MessageShape<O>): boolean;
}

/** Declares a verb that makes a unary call and prints its answer. */
export function unaryVerb<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  { ask, writes = {}, say, finish, isYes, ...declared }: UnaryDeclaration<I, O>,
): Verb {
  return declareVerb({
    ...declared,
    async run(input) {
      const { files, output, server } = input;
      const answer = await server.ask(method, await readRequest(ask, input));
      const written = Object.fromEntries(
        Object.entries(writes).map(([option, part]) => [option, files.write(option, part(answer))]),
      );
      finish?.(answer, input);
      output.answer(method.output, answer, () => {
        const said = say(answer, input, written);
        return typeof said === "string" ? said : facts(said);
      });
      return (isYes?.(answer) ?? true) ? exitCodes.done : exitCodes.no;
    },
  });
}

/** A verb whose answer is valid or not. */
type VerdictDeclaration<I extends DescMessage, O extends DescMessage> = Omit<
  UnaryDeclaration<I, O>,
  "isYes" | "writes" | "finish"
>;

/** Declares a verb whose exit code reports whether the answer is valid. */
export function verdictVerb<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  declaration: VerdictDeclaration<I, O>,
): Verb {
  return unaryVerb(method, { ...declaration, isYes });
}

function isYes(answer: object): boolean {
  if ("valid" in answer && typeof answer.valid === "boolean") return answer.valid;
  throw new Error("the answer has no field valid");
}

/** A table column: a field of an item, or a value computed from it. */
type Column<Item> = (keyof Item & string) | ((item: Item) => unknown);

type Columns<Item> = Readonly<Record<string, Column<Item>>>;

/** How to print a list. */
export interface Listing<Page, Item> {
  readonly items: (page: Page) => Item[];
  /** Text for an empty list; undefined if the list is never empty. */
  readonly none?: string | undefined;
  readonly columns: Columns<Item>;
}

/** A verb that lists items. */
interface ListDeclaration<I extends DescMessage, Page, Item>
  extends Declaration<I>,
    Omit<Listing<Page, Item>, "columns"> {
  readonly columns: Columns<Item> | ((input: VerbInput) => Columns<Item>);
}

/** Declares a verb that fetches all pages of a list and prints them as one answer. */
export function listVerb<I extends DescMessage, O extends DescMessage, Item extends object>(
  method: DescMethodUnary<I, O>,
  { ask, items, none, columns, ...declared }: ListDeclaration<I, MessageShape<O>, Item>,
): Verb {
  return declareVerb({
    ...declared,
    async run(input) {
      const shown = typeof columns === "function" ? columns(input) : columns;
      return printList(method, input, await readRequest(ask, input), { items, none, columns: shown });
    },
  });
}

/**
 * Fetches all pages of a list and prints them as one answer.
 *
 * @returns the exit code
 */
export async function printList<I extends DescMessage, O extends DescMessage, Item extends object>(
  method: DescMethodUnary<I, O>,
  { output, server }: VerbInput,
  request: MessageInitShape<I>,
  { items, none, columns }: Listing<MessageShape<O>, Item>,
): Promise<number> {
  const ask = async (pageToken: string): Promise<Paged<MessageShape<O>>> => {
    const page = await server.ask(method, { ...request, pageToken });
    if (isPaged(page)) return page;
    throw new Error(`the answer of ${method.name} has no nextPageToken`);
  };
  const [answer, ...rest] = await askPages(ask);
  const all = items(answer);
  // No push(...page): a page may have more items than a call can take as arguments.
  for (const page of rest) for (const item of items(page)) all.push(item);
  answer.nextPageToken = "";
  output.answer(method.output, answer, () => {
    const rows = all.map((item) => markDamage(item, toCells(item, columns)));
    return rows.length === 0 && none !== undefined ? none : table(Object.keys(columns), rows);
  });
  return exitCodes.done;
}

/**
 * Prints a table row for each streamed item as it arrives.
 *
 * @param count stops after this many items
 */
export async function printStream<I extends DescMessage, O extends DescMessage, Item extends object>(
  method: DescMethodServerStreaming<I, O>,
  { output, server }: VerbInput,
  request: MessageInitShape<I>,
  columns: Columns<Item>,
  itemOf: (answer: MessageShape<O>) => Item | undefined,
  count = Number.POSITIVE_INFINITY,
): Promise<number> {
  let left = count;
  for await (const answer of server.stream(method, oneOf(request))) {
    const item = itemOf(answer);
    if (item === undefined) continue;
    output.answer(method.output, answer, () => toCells(item, columns).join("  "));
    left -= 1;
    if (left <= 0) break;
  }
  return exitCodes.done;
}

/** The part of an answer that the server always fills, which the generated types cannot express. */
export function requireResult<T>(result: T | undefined): T {
  if (result === undefined) throw new Error("the answer has no result");
  return result;
}

type Paged<Page> = Page & { nextPageToken: string };

function isPaged<Page extends object>(page: Page): page is Paged<Page> {
  return "nextPageToken" in page && typeof page.nextPageToken === "string";
}

/** Formats one row, in column order. */
function toCells<Item>(item: Item, columns: Columns<Item>): string[] {
  return Object.values(columns).map((column) =>
    toText(typeof column === "function" ? column(item) : item[column]),
  );
}

function toText(value: unknown): string {
  if (value === undefined) return "";
  return isTimestamp(value) ? time(value) : String(value);
}

function isTimestamp(value: unknown): value is Timestamp {
  return (
    typeof value === "object" &&
    value !== null &&
    "$typeName" in value &&
    value.$typeName === "google.protobuf.Timestamp"
  );
}

/** Keeps only the ID of a damaged record: the server sends nothing else. */
function markDamage(item: object, cells: readonly string[]): readonly string[] {
  const isDamaged = "damaged" in item && item.damaged === true;
  return isDamaged
    ? [...cells.slice(0, 1), ...cells.slice(2).map(() => ""), "DAMAGED: changed outside the service"]
    : cells;
}
