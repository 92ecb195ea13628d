/** Ends calls that exceed their deadline, even if their handler ignores its signal. */
import type { Interceptor } from "@connectrpc/connect";
import { refuse } from "../../errors.ts";
import { createInterrupt, raceSignal } from "../../protocol/interrupt.ts";
import { untilAborted } from "./streams.ts";

/**
 * Races every call against its signal, and every unary call against the server's own limit.
 *
 * A stream has only the caller's deadline, because a watcher may watch for days. A stream whose deadline passes
 * fails, even if its handler ends normally, because a truncated list must not look complete.
 *
 * @param limitMs milliseconds that a unary call may take at most.
 */
export function deadlineInterceptor(limitMs: number): Interceptor {
  return (next) => async (req) => {
    if (req.stream) {
      const res = await raceSignal(next(req), req.signal);
      return res.stream ? { ...res, message: untilAborted(res.message, req.signal) } : res;
    }
    const gate = createGate(req.signal, limitMs);
    try {
      return await gate.race(next({ ...req, signal: gate.signal }));
    } finally {
      gate.release();
    }
  };
}

/** A signal to race a promise against. `release` removes its timer and its listener. */
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
  if (outer.aborted) onAbort();
  else outer.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => {
    end(refuse("DEADLINE_EXCEEDED", `the call did not finish within ${limitMs / 1000} seconds`));
  }, limitMs);
  return {
    signal: controller.signal,
    race,
    release: () => {
      clearTimeout(timer);
      outer.removeEventListener("abort", onAbort);
    },
  };
}
