/**
 * Ends streams, even if their handlers ignore their signals: at the caller's deadline, when the caller leaves or
 * is no longer authorized, and when the server starts to stop, according to the `qsp.drain` option.
 *
 * A stream has no other deadline than the caller's, because a watcher may watch for days. An ended stream fails
 * even if its handler ends normally, because a truncated list must not look complete.
 */
import { getOption } from "@bufbuild/protobuf";
import type { Interceptor, StreamRequest, StreamResponse, UnaryResponse } from "@connectrpc/connect";
import { Drain, drain } from "#gen/qsp/drain_pb.ts";
import { callerKey } from "../../calls/call-values.ts";
import { raceSignal } from "../../calls/interrupt.ts";
import type { CallerWatch } from "./caller-watch.ts";
import { cutOff, mapStream, untilAborted } from "./streams.ts";

type Next = (req: StreamRequest) => Promise<UnaryResponse | StreamResponse>;

/**
 * @param draining aborts when the server starts to stop; its reason is the error that ends the streams
 * @param watchCaller undefined if calls need no tokens
 */
export function streamEndInterceptor(
  draining: AbortSignal,
  watchCaller: CallerWatch | undefined,
): Interceptor {
  return (next) => (req) => {
    if (!req.stream) return next(req);
    switch (getOption(req.method, drain)) {
      case Drain.END:
        return runUntil([req.signal, draining], req, next, watchCaller);
      case Drain.ANSWER:
        return endAfterAnswers(req, (one) => runUntil([one.signal], one, next, watchCaller), draining);
      default:
        return runUntil([req.signal], req, next, watchCaller);
    }
  };
}

/** Runs a stream until one of its ends aborts, or its caller is no longer authorized. */
async function runUntil(
  ends: readonly AbortSignal[],
  req: StreamRequest,
  next: Next,
  watchCaller: CallerWatch | undefined,
): Promise<UnaryResponse | StreamResponse> {
  // Start nothing, such as a watch on the caller, for a finished call: no event would ever cancel it.
  req.signal.throwIfAborted();
  const refused = new AbortController();
  const signal = AbortSignal.any([...ends, refused.signal]);
  const caller = req.contextValues.get(callerKey);
  const stop = (caller && watchCaller?.(caller, (error) => refused.abort(error))) ?? (() => {});
  signal.addEventListener("abort", stop, { once: true });
  try {
    const res = await raceSignal(next({ ...req, signal }), signal);
    if (res.stream) return { ...res, message: mapStream(untilAborted(res.message, signal), { end: stop }) };
    stop();
    return res;
  } catch (error) {
    stop();
    throw error;
  }
}

/**
 * The handler sees the end of the requests, answers those it has, and ends. Then the client gets the error.
 */
async function endAfterAnswers(
  req: StreamRequest,
  next: Next,
  draining: AbortSignal,
): Promise<UnaryResponse | StreamResponse> {
  const requests = cutOff(req.message, draining);
  const res = await next({ ...req, message: requests.messages });
  if (!res.stream) return res;
  const responses = res.message;
  const message = (async function* () {
    yield* responses;
    if (requests.isCut()) throw draining.reason;
  })();
  return { ...res, message };
}
