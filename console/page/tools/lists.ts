/** Lists on the server, which the tools load page by page. */

/** The first records of a list. */
export interface List<T> {
  readonly items: readonly T[];
  /** Empty if these are all. */
  readonly nextPageToken: string;
  readonly totalSize: number;
}

/** Records to load at a time. */
export const pageSize = 50;
const maxPageSize = 1000;

/**
 * Loads records up to a count.
 *
 * @param load makes the call for one page
 * @param itemsOf reads the records of its answer
 * @param known the records loaded so far
 */
export async function loadList<Answer extends Omit<List<unknown>, "items">, T>(
  load: (page: { readonly pageSize: number; readonly pageToken: string }) => Promise<Answer>,
  itemsOf: (answer: Answer) => readonly T[],
  count: number,
  known?: List<T>,
): Promise<List<T>> {
  let items = known?.items ?? [];
  let pageToken = known?.nextPageToken ?? "";
  for (;;) {
    const pageSize = Math.min(maxPageSize, Math.max(1, count - items.length));
    const answer = await load({ pageSize, pageToken });
    const { nextPageToken, totalSize } = answer;
    items = [...items, ...itemsOf(answer)];
    pageToken = nextPageToken;
    if (pageToken === "" || items.length >= count) return { items, nextPageToken, totalSize };
  }
}
