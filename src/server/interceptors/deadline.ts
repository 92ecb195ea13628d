/** Ends calls that exceed their deadline, even if their handler ignores its signal. */
import type { Interceptor } from "@connectrpc/connect";
import { createInterrupt, raceSignal } from "../../protocol/interrupt.ts";
import { callTooSlow } from "../../protocol/timeout.ts";
import { finished } from "../../protocol/unary-call.ts";
import { untilAborted } from "./streams.ts";

/**
 * Races every stream against its signal.
 *
 * A stream has only the caller's deadline, because a watcher may watch for days. A stream whose deadline passes
 * fails, even if its handler ends normally, because a truncated list must not look complete.
 */
export const streamDeadlineInterceptor: Interceptor = (next) => async (req) => {
  if (!req.stream) return next(req);
  // Nothing begins for a call that is over: no event would end it, as the watch of its caller.
  req.signal.throwIfAborted();
  const res = await raceSignal(next(req), req.signal);
  return res.stream ? { ...res, message: untilAborted(res.message, req.signal) } : res;
};

/**
 * Races the unary calls of Connect's protocols against their signal and the server's own limit. Calls of binary gRPC
 * and REST have their own limits (unary-call.ts).
 *
 * @param limitMs milliseconds that a call may take at most.
 */
export function unaryDeadlineInterceptor(limitMs: number): Interceptor {
  return (next) => async (req) => {
    if (req.stream) return next(req);
    // A call that is over must change nothing.
    req.signal.throwIfAborted();
    const gate = createGate(req.signal, limitMs);
    try {
      return await gate.race(next({ ...req, signal: gate.signal }));
    } finally {
      gate.release();
    }
  };
}

/** A signal to race a promise against. `release` removes its timer and its listener, and aborts the signal. */
interface Gate {
  readonly signal: AbortSignal;
  race<T>(promise: Promise<T>): Promise<T>;
  release(): void;
}

function createGate(outer: AbortSignal, limitMs: number): Gate {
  const controller = new AbortController();
  const { race, interrupt } = createInterrupt();
  const end = (reason: unknown): void => {
    controller.abort(reason);
    interrupt(reason);
  };
  const onAbort = (): void => end(outer.reason);
  outer.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => end(callTooSlow(limitMs)), limitMs);
  return {
    signal: controller.signal,
    race,
    release: () => {
      clearTimeout(timer);
      // What the handler has left running ends with the call, as in binary gRPC and REST.
      controller.abort(finished);
      outer.removeEventListener("abort", onAbort);
    },
  };
}
