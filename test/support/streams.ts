/** Streams that tests send and read. */
import { PassThrough } from "node:stream";

/** A request stream to which the test sends messages one by one. */
export interface Outgoing<Request> extends AsyncIterable<Request> {
  send(request: Request): void;
  end(): void;
}

/** Creates a request stream. */
export function createOutgoing<Request>(): Outgoing<Request> {
  const requests = new PassThrough({ objectMode: true });
  return {
    send: (request) => void requests.write(request),
    end: () => void requests.end(),
    [Symbol.asyncIterator]: () => requests[Symbol.asyncIterator](),
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
