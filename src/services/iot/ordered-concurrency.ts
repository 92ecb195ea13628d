/** How many items to hold at a time, by number and by total size; the limit reached first applies. */
export interface InOrderLimits<Item> {
  readonly items: number;
  readonly bytes: number;
  readonly bytesOf: (item: Item) => number;
}

/**
 * Works on items as they arrive, several at a time. Yields the results in the order of the items, each as soon as it
 * and all earlier ones are available.
 *
 * @param limits how much to hold at a time; the source waits while a limit is reached.
 */
export async function* inOrder<Item, Result>(
  source: AsyncIterable<Item>,
  limits: InOrderLimits<Item>,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const results: { readonly result: Promise<Result>; readonly bytes: number }[] = [];
  let heldBytes = 0;
  const changed = createSignal();
  let isOver = false;
  let failure: { error: unknown } | undefined;
  const read = async (): Promise<void> => {
    for await (const item of source) {
      const result = work(item);
      // It is awaited in its turn; until then, its failure must not count as unhandled.
      result.catch(() => {});
      const bytes = limits.bytesOf(item);
      results.push({ result, bytes });
      heldBytes += bytes;
      changed.tell();
      while ((results.length >= limits.items || heldBytes >= limits.bytes) && !isOver) await changed.wait();
      if (isOver) return;
    }
  };
  const reading = read()
    .catch((error: unknown) => {
      failure = { error };
    })
    .finally(() => {
      isOver = true;
      changed.tell();
    });
  try {
    for (;;) {
      const next = results[0];
      if (next !== undefined) {
        yield await next.result;
        void results.shift();
        heldBytes -= next.bytes;
        changed.tell();
      } else if (isOver) break;
      else await changed.wait();
    }
    await reading;
    if (failure) throw failure.error;
  } finally {
    isOver = true;
    changed.tell();
  }
}

/** A signal that several callers can wait for repeatedly. */
function createSignal() {
  let waiting: PromiseWithResolvers<void> | undefined;
  return {
    wait(): Promise<void> {
      waiting ??= Promise.withResolvers<void>();
      return waiting.promise;
    },
    tell(): void {
      waiting?.resolve();
      waiting = undefined;
    },
  };
}
