/** What interceptors do to every message and every error of a stream. */

/** Handlers for what passes through a stream. */
export interface StreamMapping<T> {
  readonly message?: (message: T) => T;
  readonly error?: (thrown: unknown) => unknown;
  /** Runs once when the stream ends: without an argument if it ended well, or was left by its reader. */
  readonly end?: (thrown?: unknown) => void;
}

/** Passes a stream through, message by message, and hands its end on to where it comes from. */
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
