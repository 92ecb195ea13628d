/** Prints lists that a server returns in pages. */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { askPages } from "./client.ts";
import { exitCodes } from "./exit-codes.ts";
import { listing, type Output } from "./output.ts";

/** A list, and its form as a table. */
export interface List<Page, Item> {
  readonly ask: (pageToken: string) => Promise<Page>;
  readonly itemsOf: (page: Page) => Item[];
  /** The sentence for an empty list. */
  readonly none: string;
  readonly headers: readonly string[];
  readonly toCells: (item: Item) => readonly string[];
}

/** Requests all pages of a list, and prints them as one answer. @returns the exit code */
export async function printList<Desc extends DescMessage, Item>(
  output: Output,
  desc: Desc,
  { ask, itemsOf, none, headers, toCells }: List<MessageShape<Desc> & { nextPageToken: string }, Item>,
): Promise<number> {
  const answer = await askPages(ask, itemsOf);
  output.answer(desc, answer, () =>
    listing(none, headers, itemsOf(answer), (item) => markDamage(item, toCells(item))),
  );
  return exitCodes.done;
}

/** The first cell is the ID, which is all that a server tells of a damaged record. */
function markDamage(item: unknown, cells: readonly string[]): readonly string[] {
  const isDamaged = typeof item === "object" && item !== null && "damaged" in item && item.damaged === true;
  return isDamaged
    ? [...cells.slice(0, 1), ...cells.slice(2).map(() => ""), "DAMAGED: changed outside the service"]
    : cells;
}
