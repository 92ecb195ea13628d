/** A stream of requests that the test writes as it goes. */
export interface Queue<T> extends AsyncIterable<T> {
  push(item: T): void;
  end(): void;
}

/** Makes an empty queue; it is read once. */
export function createQueue<T>(): Queue<T> {
  const items: T[] = [];
  let isEnded = false;
  let changed = Promise.withResolvers<void>();
  const wake = (): void => {
    changed.resolve();
    changed = Promise.withResolvers<void>();
  };
  return {
    push(item) {
      items.push(item);
      wake();
    },
    end() {
      isEnded = true;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const item = items.shift();
        if (item !== undefined) yield item;
        else if (isEnded) return;
        else await changed.promise;
      }
    },
  };
}
