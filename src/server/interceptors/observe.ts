/** Counts and logs every call with its outcome, and gives it a request ID that the caller can quote. */
import { randomBytes } from "node:crypto";
import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import { findReason, isServerFault } from "../../errors.ts";
import type { Metrics } from "../metrics.ts";
import { endOnAbort, mapStream } from "./streams.ts";

/** Identifies a call in its answer, its error and the log. A caller may choose the ID. */
const requestIdHeader = "x-request-id";

/** Counts and logs the calls of one server. */
export interface Observer {
  /** Runs outside of the interceptors that change answers, so it sees what the caller gets. */
  readonly interceptor: Interceptor;
  /** Counts and logs a call that was refused before the interceptors saw it. */
  refused(call: RefusedCall): void;
}

/** A call that was not admitted. */
export interface RefusedCall {
  readonly method: DescMethod;
  readonly header: Headers;
  readonly error: ConnectError;
  readonly durationMs: number;
}

/** Creates the observer of one server. */
export function createObserver(metrics: Metrics, logger: Logger): Observer {
  const nextRequestId = createRequestIds();
  return {
    interceptor: (next) => async (req) => {
      const requestId = givenRequestId(req.header) ?? nextRequestId();
      const startedMs = performance.now();
      const method = `${req.service.typeName}/${req.method.name}`;
      metrics.callStarted(method);
      const finish = (thrown?: unknown): void => {
        const durationMs = performance.now() - startedMs;
        const error = thrown === undefined ? undefined : ConnectError.from(thrown);
        metrics.callEnded(method, error?.code, durationMs);
        logCall(logger, { method, requestId, header: req.header, durationMs, error });
      };
      try {
        const res = await next(req);
        res.header.set(requestIdHeader, requestId);
        if (res.stream)
          return { ...res, message: endOnAbort(mapStream(res.message, { end: finish }), req.signal) };
        finish();
        return res;
      } catch (thrown) {
        finish(thrown);
        if (thrown instanceof ConnectError) thrown.metadata.set(requestIdHeader, requestId);
        throw thrown;
      }
    },
    refused({ method: { name, parent }, header, error, durationMs }) {
      const requestId = givenRequestId(header) ?? nextRequestId();
      const method = `${parent.typeName}/${name}`;
      metrics.callStarted(method);
      metrics.callEnded(method, error.code, durationMs);
      logCall(logger, { method, requestId, header, durationMs, error });
      error.metadata.set(requestIdHeader, requestId);
    },
  };
}

/** Counts up after a random prefix, so that two servers, or two starts of one server, do not give the same ID. */
function createRequestIds(): () => string {
  const prefix = randomBytes(6).toString("hex");
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}

/** The ID that the caller gives, if it is safe to log. */
function givenRequestId(header: Headers): string | undefined {
  const given = header.get(requestIdHeader);
  return given !== null && /^[\w.:-]{1,128}$/.test(given) ? given : undefined;
}

interface EndedCall {
  readonly method: string;
  readonly requestId: string;
  readonly header: Headers;
  readonly durationMs: number;
  readonly error: ConnectError | undefined;
}

/** Writes one line per call: server faults with their cause; at debug level also refusals and successes. */
function logCall(logger: Logger, { method, requestId, header, durationMs, error }: EndedCall): void {
  const faulty = error !== undefined && isServerFault(error);
  if (!faulty && !logger.isLevelEnabled("debug")) return;
  const line = {
    method,
    requestId,
    durationMs: Math.round(durationMs * 1000) / 1000,
    ...readTraceIds(header),
    ...(error && { code: Code[error.code], reason: findReason(error), message: error.rawMessage }),
  };
  if (faulty) logger.error({ ...line, err: error.cause ?? error }, "call failed");
  else logger.debug(line, error ? "call refused" : "call ended");
}

/**
 * Logs a server fault that occurs outside of the interceptors, such as an answer that cannot be written. Other
 * faults are logged by the interceptor.
 */
export function logUnobserved(logger: Logger, error: ConnectError): void {
  if (error.metadata.has(requestIdHeader) || !isServerFault(error)) return;
  logger.error({ code: Code[error.code], err: error.cause ?? error }, "call failed outside its handler");
}

/** Extracts the identifiers from a W3C trace context (Trace Context, section 3.2). */
function readTraceIds(header: Headers): { traceId?: string; parentId?: string } {
  const [, traceId, parentId] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(header.get("traceparent") ?? "") ?? [];
  return traceId === undefined || parentId === undefined ? {} : { traceId, parentId };
}
