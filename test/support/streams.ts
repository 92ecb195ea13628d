/** Streams that tests send and read. */

/** A request stream to which the test sends messages one by one. */
export interface Outgoing<Request> extends AsyncIterable<Request> {
  send(request: Request): void;
  end(): void;
}

/** Creates a request stream. */
export function createOutgoing<Request>(): Outgoing<Request> {
  const waiting: (Request | undefined)[] = [];
  let wake = (): void => {};
  const put = (request: Request | undefined): void => {
    waiting.push(request);
    wake();
  };
  return {
    send: put,
    end: () => put(undefined),
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (waiting.length === 0)
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        const next = waiting.shift();
        if (next === undefined) return;
        yield next;
      }
    },
  };
}

/** Creates a stream of these items. */
export async function* streamOf<Item>(...items: Item[]): AsyncGenerator<Item> {
  yield* items;
}

/** Reads a stream to its end. */
export async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _item of items);
}
