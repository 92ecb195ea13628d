/**
 * Ends streams that would not end by themselves when the server starts to stop, according to the `qsp.drain`
 * option.
 */
import { getOption } from "@bufbuild/protobuf";
import type { Interceptor, StreamRequest, StreamResponse, UnaryResponse } from "@connectrpc/connect";
import { Drain, drain } from "#gen/qsp/drain_pb.ts";
import { raceSignal } from "../../calls/interrupt.ts";
import { cutOff, untilAborted } from "./streams.ts";

type Next = (req: StreamRequest) => Promise<UnaryResponse | StreamResponse>;

/** @param draining aborts when the server starts to stop; its reason is the error that ends the streams */
export function drainInterceptor(draining: AbortSignal): Interceptor {
  return (next) => (req) => {
    if (!req.stream) return next(req);
    switch (getOption(req.method, drain)) {
      case Drain.END:
        return endAtOnce(req, next, draining);
      case Drain.ANSWER:
        return endAfterAnswers(req, next, draining);
      default:
        return next(req);
    }
  };
}

async function endAtOnce(
  req: StreamRequest,
  next: Next,
  draining: AbortSignal,
): Promise<UnaryResponse | StreamResponse> {
  const signal = AbortSignal.any([req.signal, draining]);
  const res = await raceSignal(next({ ...req, signal }), draining);
  return res.stream ? { ...res, message: untilAborted(res.message, draining) } : res;
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
