/** Helpers for interceptors that handle every message and every error of a stream. */
import type { Interceptor } from "@connectrpc/connect";
import { createInterrupt } from "../../protocol/interrupt.ts";

/** Composes interceptors, outermost first, into one that applies them to streams only. */
export function forStreams(interceptors: readonly Interceptor[]): Interceptor {
  return (next) => {
    const run = interceptors.reduceRight((inner, one) => one(inner), next);
    return (req) => (req.stream ? run(req) : next(req));
  };
}

/** Handlers for the messages, the errors and the end of a stream. */
export interface StreamMapping<T> {
  readonly message?: (message: T) => T;
  readonly error?: (thrown: unknown) => unknown;
  /** Runs once when the stream ends: without an argument if it succeeded or its reader left. */
  readonly end?: (thrown?: unknown) => void;
}

/** Passes a stream through, message by message. Ends the source when the reader leaves. */
export async function* mapStream<T>(source: AsyncIterable<T>, mapping: StreamMapping<T>): AsyncGenerator<T> {
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
 * Ends a stream when its call is aborted, even if its reader does not request the next message. Otherwise a reader
 * that stalls and then disconnects would leave the handler waiting forever.
 */
export function endOnAbort<T>(source: AsyncGenerator<T>, signal: AbortSignal): AsyncIterable<T> {
  signal.addEventListener("abort", () => void source.return(undefined).catch(() => {}), { once: true });
  return source;
}

/** Passes a stream through until a signal aborts, even while its handler waits for something else. */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
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
