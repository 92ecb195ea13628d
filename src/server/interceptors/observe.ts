/** Counts and logs every call, with its outcome. */
import type { Interceptor } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import { reasonOf } from "../../errors.ts";
import type { Metrics } from "../metrics.ts";
import { mapStream } from "./streams.ts";

/** Outermost of all: what it sees is what the caller gets. */
export function observeInterceptor(metrics: Metrics, logger: Logger): Interceptor {
  return (next) => async (req) => {
    const startedMs = performance.now();
    const method = `${req.service.typeName}/${req.method.name}`;
    metrics.callStarted(method);
    const finish = (thrown?: unknown): void => {
      const durationMs = performance.now() - startedMs;
      const error = thrown === undefined ? undefined : ConnectError.from(thrown);
      metrics.callEnded(method, error?.code, durationMs);
      logCall(logger, { method, header: req.header, durationMs, error });
    };
    try {
      const res = await next(req);
      if (res.stream) return { ...res, message: mapStream(res.message, { end: finish }) };
      finish();
      return res;
    } catch (thrown) {
      finish(thrown);
      throw thrown;
    }
  };
}

interface EndedCall {
  readonly method: string;
  readonly header: Headers;
  readonly durationMs: number;
  readonly error: ConnectError | undefined;
}

/** Writes one line a call: errors of ours with their cause, refusals with their reason, the rest for debugging. */
function logCall(logger: Logger, { method, header, durationMs, error }: EndedCall): void {
  const faulty = error !== undefined && isFault(error.code);
  if (!faulty && !logger.isLevelEnabled("debug")) return;
  const line = {
    method,
    durationMs: Math.round(durationMs * 1000) / 1000,
    ...traceOf(header),
    ...(error && { code: Code[error.code], reason: reasonOf(error), message: error.rawMessage }),
  };
  if (faulty) logger.error({ ...line, err: error.cause ?? error }, "call failed");
  else logger.debug(line, error ? "call refused" : "call ended");
}

/** True for what an operator should look at; the other codes are the caller's. */
function isFault(code: Code): boolean {
  return code === Code.Internal || code === Code.Unknown || code === Code.DataLoss;
}

/** Takes the identifiers out of a W3C trace context (Trace Context, section 3.2). */
function traceOf(header: Headers): { traceId?: string; parentId?: string } {
  const [, traceId, parentId] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(header.get("traceparent") ?? "") ?? [];
  return traceId === undefined || parentId === undefined ? {} : { traceId, parentId };
}
