/**
 * How many items to hold at a time, by number and by total size; whichever limit is reached first applies.
 */
export interface InOrderLimits<Item> {
  readonly items: number;
  readonly bytes: number;
  readonly bytesOf: (item: Item) => number;
}

/**
 * Processes items concurrently as they arrive, and yields the results in item order.
 *
 * @param limits how much to hold at a time; a full buffer applies backpressure to the source
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
      // Awaited in its turn; until then, a failure must not count as an unhandled rejection.
      result.catch(() => {});
      const bytes = limits.bytesOf(item);
      results.push({ result, bytes });
      heldBytes += bytes;
      changed.notify();
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
      changed.notify();
    });
  try {
    for (;;) {
      const next = results[0];
      if (next !== undefined) {
        yield await next.result;
        void results.shift();
        heldBytes -= next.bytes;
        changed.notify();
      } else if (isOver) break;
      else await changed.wait();
    }
    await reading;
    if (failure) throw failure.error;
  } finally {
    isOver = true;
    changed.notify();
  }
}

/** A reusable signal that several callers can wait for. */
function createSignal() {
  let waiting: PromiseWithResolvers<void> | undefined;
  return {
    wait(): Promise<void> {
      waiting ??= Promise.withResolvers<void>();
      return waiting.promise;
    },
    notify(): void {
      waiting?.resolve();
      waiting = undefined;
    },
  };
}
