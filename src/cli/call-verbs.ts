/** Declares verbs that print an answer of the API: how to build the request and how to print the answer. */
import {
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  isMessage,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { askPages, oneOf } from "./connection/api-client.ts";
import { exitCodes } from "./exit-codes.ts";
import { cell, facts, table, time } from "./output/output.ts";
import { declareVerb, type Verb, type VerbDeclaration, type VerbInput } from "./verb.ts";

/** Fields that every declaration has. */
type Declaration = Pick<VerbDeclaration, "line" | "meaning" | "example" | "options" | "operandFiles">;

/** The request of a call. */
interface Asking<I extends DescMessage> {
  /** Builds the request from the command line; empty by default. */
  ask?(input: VerbInput): MessageInitShape<I> | Promise<MessageInitShape<I>>;
}

async function readRequest<I extends DescMessage>(
  ask: Asking<I>["ask"],
  input: VerbInput,
): Promise<MessageInitShape<I>> {
  // Every request message may be empty.
  return (await ask?.(input)) ?? ({} as MessageInitShape<I>);
}

/** Labels and values to print; empty and undefined values are left out. */
type Facts = Readonly<Record<string, string | undefined>>;

/** What a verb does with its one answer. */
interface Answering<Answer> extends Declaration {
  /** Fields of the answer to write to files, by option name. */
  readonly writes?: Readonly<Record<string, (answer: Answer) => string | Uint8Array>>;
  /**
   * Formats the answer as text.
   *
   * @param files names of the written files, by option name
   */
  say(answer: Answer, input: VerbInput, files: Facts): string | Facts;
  /** Runs after files are written and before the answer is printed; may modify the answer. */
  finish?(answer: Answer, input: VerbInput): void;
  /** Returns whether the answer is yes (exit code 0) or no (exit code 1). */
  isYes?(answer: Answer): boolean;
}

/**
 * Declares a verb that prints one answer.
 *
 * @param find makes the calls
 */
export function answerVerb<O extends DescMessage>(
  output: O,
  find: (input: VerbInput) => Promise<MessageShape<O>>,
  { writes = {}, say, finish, isYes, ...declared }: Answering<MessageShape<O>>,
): Verb {
  return declareVerb({
    ...declared,
    async run(input) {
      const answer = await find(input);
      const written = Object.fromEntries(
        Object.entries(writes).map(([option, part]) => [option, input.files.write(option, part(answer))]),
      );
      finish?.(answer, input);
      const text = (): string => {
        const said = say(answer, input, written);
        return typeof said === "string" ? said : facts(said);
      };
      return input.output.answer(output, answer, text, isYes?.(answer));
    },
  });
}

/** Declares a verb that makes a unary call and prints its answer. */
export function unaryVerb<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  { ask, ...declared }: Answering<MessageShape<O>> & Asking<I>,
): Verb {
  const find = async (input: VerbInput) => input.server.ask(method, await readRequest(ask, input));
  return answerVerb(method.output, find, declared);
}

/** A table column: a field of an item, or a value computed from it. */
type Column<Item> = (keyof Item & string) | ((item: Item, input: VerbInput) => unknown);

type Columns<Item> = Readonly<Record<string, Column<Item>>>;

/** How to print a list. */
export interface Listing<Page, Item> {
  readonly items: (page: Page) => Item[];
  /** Text for an empty list; undefined if the list is never empty. */
  readonly none?: string | undefined;
  readonly columns: Columns<Item>;
}

/** Declares a verb that fetches all pages of a list and prints them as one answer. */
export function listVerb<I extends DescMessage, O extends DescMessage, Item extends object>(
  method: DescMethodUnary<I, O>,
  { ask, items, none, columns, ...declared }: Declaration & Asking<I> & Listing<MessageShape<O>, Item>,
): Verb {
  return declareVerb({
    ...declared,
    run: async (input) => printList(method, input, await readRequest(ask, input), { items, none, columns }),
  });
}

/**
 * Fetches all pages of a list and prints them as one answer.
 *
 * @returns the exit code
 */
export async function printList<I extends DescMessage, O extends DescMessage, Item extends object>(
  method: DescMethodUnary<I, O>,
  input: VerbInput,
  request: MessageInitShape<I>,
  { items, none, columns }: Listing<MessageShape<O>, Item>,
): Promise<number> {
  const ask = async (pageToken: string): Promise<Paged<MessageShape<O>>> => {
    const page = await input.server.ask(method, { ...request, pageToken });
    if (isPaged(page)) return page;
    throw new Error(`the answer of ${method.name} has no nextPageToken`);
  };
  const [answer, ...rest] = await askPages(ask);
  const all = items(answer);
  // No push(...page): a page may have more items than a call can take as arguments.
  for (const page of rest) for (const item of items(page)) all.push(item);
  answer.nextPageToken = "";
  input.output.answer(method.output, answer, () => {
    const rows = all.map((item) => markDamage(item, toCells(item, columns, input)));
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
  input: VerbInput,
  request: MessageInitShape<I>,
  columns: Columns<Item>,
  itemOf: (answer: MessageShape<O>) => Item | undefined,
  count = Number.POSITIVE_INFINITY,
): Promise<number> {
  let left = count;
  for await (const answer of input.server.stream(method, oneOf(request))) {
    const item = itemOf(answer);
    if (item === undefined) continue;
    input.output.answer(method.output, answer, () => toCells(item, columns, input).map(cell).join("  "));
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
function toCells<Item>(item: Item, columns: Columns<Item>, input: VerbInput): string[] {
  return Object.values(columns).map((column) =>
    toText(typeof column === "function" ? column(item, input) : item[column]),
  );
}

function toText(value: unknown): string {
  if (value === undefined) return "";
  return isMessage(value, TimestampSchema) ? time(value) : String(value);
}

/** Keeps only the ID of a damaged record: the server sends nothing else. */
function markDamage(item: object, cells: readonly string[]): readonly string[] {
  const isDamaged = "damaged" in item && item.damaged === true;
  return isDamaged
    ? [...cells.slice(0, 1), ...cells.slice(2).map(() => ""), "DAMAGED: changed outside the service"]
    : cells;
}
