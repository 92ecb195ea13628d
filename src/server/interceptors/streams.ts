/** Helpers for interceptors that handle every message and every error of a stream. */
import type { Interceptor } from "@connectrpc/connect";
import { createInterrupt } from "../../calls/interrupt.ts";

/** Composes interceptors, outermost first, into one that applies them to streams only. */
export function forStreams(interceptors: readonly Interceptor[]): Interceptor {
  return (next) => {
    const run = interceptors.reduceRight((inner, one) => one(inner), next);
    return (req) => (req.stream ? run(req) : next(req));
  };
}

/** Handlers for the messages, errors and end of a stream. */
export interface StreamMapping<T> {
  readonly message?: (message: T) => T;
  readonly error?: (thrown: unknown) => unknown;
  /**
   * Runs once when the stream ends, even before its first message; no argument if it succeeded or its reader
   * left.
   */
  readonly end?: (thrown?: unknown) => void;
}

/** Passes a stream through, message by message. Ends the source when the reader leaves. */
export function mapStream<T>(source: AsyncIterable<T>, mapping: StreamMapping<T>): AsyncGenerator<T> {
  return leaveBefore(passOn(source, mapping), () => {
    mapping.end?.();
    leave(source);
  });
}

/** Runs a function if a stream is abandoned before it has begun. A generator itself runs nothing then. */
function leaveBefore<T>(stream: AsyncGenerator<T>, onLeave: () => void): AsyncGenerator<T> {
  const next = stream.next.bind(stream);
  const end = stream.return.bind(stream);
  let hasBegun = false;
  return Object.assign(stream, {
    next() {
      hasBegun = true;
      return next();
    },
    return(value: unknown) {
      if (!hasBegun) onLeave();
      hasBegun = true;
      return end(value);
    },
  });
}

/** Not awaited: a stream that waits for something else would delay the end. Nobody can use its errors. */
function leave(source: AsyncIterable<unknown>): void {
  source[Symbol.asyncIterator]()
    .return?.()
    ?.catch(() => {});
}

async function* passOn<T>(source: AsyncIterable<T>, mapping: StreamMapping<T>): AsyncGenerator<T> {
  let failure: { thrown: unknown } | undefined;
  try {
    for await (const message of source) yield mapping.message ? mapping.message(message) : message;
  } catch (thrown) {
    failure = { thrown: mapping.error ? mapping.error(thrown) : thrown };
    throw failure.thrown;
  } finally {
    if (failure === undefined) mapping.end?.();
    else mapping.end?.(failure.thrown);
  }
}

/**
 * Ends a stream when its call is aborted, even if its reader does not request the next message. Otherwise a
 * reader that stalls and then disconnects would leave the handler waiting forever.
 */
export function endOnAbort<T>(source: AsyncGenerator<T>, signal: AbortSignal): AsyncIterable<T> {
  signal.addEventListener("abort", () => void source.return(undefined).catch(() => {}), { once: true });
  return source;
}

/** Passes a stream through until a signal aborts, even while its handler waits for something else. */
export function untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  return leaveBefore(raceEach(source, signal), () => leave(source));
}

async function* raceEach<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  // One listener serves the whole stream: adding and removing one takes longer than passing a message on.
  const { race, interrupt } = createInterrupt();
  const onAbort = (): void => interrupt(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      const next = await race(iterator.next());
      signal.throwIfAborted();
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Not awaited: a handler that waits for something else would delay the end.
    void iterator.return?.()?.catch(() => {});
  }
}

/** Requests that end when a signal aborts. */
export interface CutRequests<T> {
  readonly messages: AsyncIterable<T>;
  /** Returns whether the signal aborted before the requests ended by themselves. */
  readonly isCut: () => boolean;
}

/** Passes the requests of a stream on until a signal aborts; then they end without an error. */
export function cutOff<T>(source: AsyncIterable<T>, signal: AbortSignal): CutRequests<T> {
  let isCut = false;
  const { race, interrupt } = createInterrupt();
  const cut = (): void => {
    isCut = true;
    interrupt(signal.reason);
  };
  async function* pass(): AsyncGenerator<T> {
    if (signal.aborted) cut();
    else signal.addEventListener("abort", cut, { once: true });
    const iterator = source[Symbol.asyncIterator]();
    let isOpen = true;
    try {
      while (!isCut) {
        const next = await race(iterator.next()).catch((error: unknown) => {
          if (isCut) return undefined;
          isOpen = false;
          throw error;
        });
        isOpen &&= next?.done !== true;
        if (next === undefined || next.done === true) return;
        yield next.value;
      }
    } finally {
      signal.removeEventListener("abort", cut);
      // Returning the source after a cut would close the connection before the answers are sent.
      if (isOpen && !isCut) await iterator.return?.();
    }
  }
  return { messages: pass(), isCut: () => isCut };
}
