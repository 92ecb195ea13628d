/** Ends calls that exceed their deadline, even if their handler ignores its signal. */
import type { Interceptor } from "@connectrpc/connect";
import { raceSignal } from "../../calls/interrupt.ts";
import { untilAborted } from "./streams.ts";

/**
 * Races every stream against its signal.
 *
 * A stream has only the caller's deadline, because a watcher may watch for days. A stream whose deadline
 * passes fails even if its handler ends normally, because a truncated list must not look complete.
 */
export const streamDeadlineInterceptor: Interceptor = (next) => async (req) => {
  if (!req.stream) return next(req);
  // Start nothing, such as a watch on the caller, for a finished call: no event would ever cancel it.
  req.signal.throwIfAborted();
  const res = await raceSignal(next(req), req.signal);
  return res.stream ? { ...res, message: untilAborted(res.message, req.signal) } : res;
};
