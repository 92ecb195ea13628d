/** The messages of a stream between threads. Their producer is only a few messages ahead of their consumer. */

/** Messages that a producer may be ahead. */
const windowMessages = 4;
/** Messages after which a consumer reports how many it has taken. */
const reportMessages = 2;

/** The events of a reader that the producer of an inbox learns of. */
export interface InboxHooks {
  /** The reader has taken some messages, so there is room for as many. */
  readonly onTaken: (count: number) => void;
  /** The reader left before the end. */
  readonly onLeft: () => void;
}

/**
 * Messages that arrive for one reader. It is an iterator and not a generator, because the return of a generator waits
 * for the next message.
 */
export class Inbox<T> implements AsyncIterableIterator<T> {
  readonly #hooks: InboxHooks | undefined;
  readonly #messages: T[] = [];
  readonly #reads: PromiseWithResolvers<IteratorResult<T>>[] = [];
  #ending: { readonly failure?: { readonly thrown: unknown } } | undefined;
  #untold = 0;

  constructor(hooks?: InboxHooks) {
    this.#hooks = hooks;
  }

  put(message: T): void {
    if (this.#ending !== undefined) return;
    this.#messages.push(message);
    this.#serve();
  }

  /** Ends the messages, or lets them fail, after those that have arrived. The first end counts. */
  end(failure?: { readonly thrown: unknown }): void {
    this.#ending ??= failure === undefined ? {} : { failure };
    this.#serve();
  }

  /** Drops the messages that have arrived, and ends. */
  abort(failure?: { readonly thrown: unknown }): void {
    this.#messages.length = 0;
    this.end(failure);
  }

  next(): Promise<IteratorResult<T>> {
    const read = Promise.withResolvers<IteratorResult<T>>();
    this.#reads.push(read);
    this.#serve();
    return read.promise;
  }

  async return(): Promise<IteratorResult<T>> {
    const isEarly = this.#ending === undefined;
    this.#ending = {};
    this.abort();
    if (isEarly) this.#hooks?.onLeft();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #serve(): void {
    while (this.#messages.length > 0 || this.#ending !== undefined) {
      const read = this.#reads.shift();
      if (read === undefined) return;
      if (this.#messages.length > 0) {
        // The line above has checked that there is a message.
        read.resolve({ done: false, value: this.#messages.shift() as T });
        this.#countTaken();
      } else if (this.#ending?.failure !== undefined) {
        read.reject(this.#ending.failure.thrown);
        // As with a generator, only one read fails.
        this.#ending = {};
      } else read.resolve({ done: true, value: undefined });
    }
  }

  #countTaken(): void {
    this.#untold += 1;
    if (this.#untold < reportMessages || this.#ending !== undefined) return;
    this.#hooks?.onTaken(this.#untold);
    this.#untold = 0;
  }
}

/** Sends the messages of a source while their consumer has room. */
export class Outflow<T> {
  readonly #source: AsyncIterable<T>;
  readonly #send: (message: T) => void;
  #iterator: AsyncIterator<T> | undefined;
  #room = windowMessages;
  #wake: (() => void) | undefined;
  #isClosed = false;

  constructor(source: AsyncIterable<T>, send: (message: T) => void) {
    this.#source = source;
    this.#send = send;
  }

  /** Runs to the end of the source, or until it is closed. @throws what the source or the sender throws */
  async run(): Promise<void> {
    try {
      const iterator = this.#source[Symbol.asyncIterator]();
      this.#iterator = iterator;
      while (await this.#waitForRoom()) {
        const next = await iterator.next();
        if (this.#isClosed || next.done === true) return;
        this.#room -= 1;
        this.#sendOrLeave(next.value);
      }
    } catch (thrown) {
      if (!this.#isClosed) throw thrown;
    }
  }

  addRoom(count: number): void {
    this.#room += count;
    this.#wake?.();
  }

  /** Takes no more messages. The source stays as it is. */
  close(): void {
    this.#isClosed = true;
    this.#wake?.();
  }

  /** Takes no more messages, and tells the source so. */
  leave(): void {
    if (this.#isClosed) return;
    this.close();
    void this.#returnSource();
  }

  async #waitForRoom(): Promise<boolean> {
    if (this.#room === 0 && !this.#isClosed)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    return !this.#isClosed;
  }

  #sendOrLeave(message: T): void {
    try {
      this.#send(message);
    } catch (thrown) {
      void this.#returnSource();
      throw thrown;
    }
  }

  /** Not awaited: a source that waits for something else would delay the end. Its errors are of no use to anyone. */
  async #returnSource(): Promise<void> {
    try {
      await this.#iterator?.return?.();
    } catch {}
  }
}
