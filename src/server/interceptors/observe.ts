/** Counts and logs every call with its outcome, and gives it a request ID that the caller can quote. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ContextValues, Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import { type CallSpan, callSpanKey, type Tracing } from "../../calls/call-span.ts";
import { requestIdKey } from "../../calls/call-values.ts";
import { findReason, isServerFault } from "../../errors.ts";
import type { Metrics } from "../metrics.ts";
import { type RequestIds, requestIdHeader } from "../request-ids.ts";
import { endOnAbort, mapStream } from "./streams.ts";

export interface Observer {
  /** Counts a call as running and gives it its request ID. */
  start(req: Pick<UnaryRequest | StreamRequest, "method" | "header" | "contextValues">): ObservedCall;
  /** Observes streams. Runs outside the interceptors that change answers, so it sees what the caller gets. */
  readonly streamInterceptor: Interceptor;
  /** Counts and logs a call that was refused before the interceptors saw it. */
  refused(call: RefusedCall): void;
}

/** A running call. Exactly one of the two methods must be called, once. */
export interface ObservedCall {
  /** @param header the response headers, which get the request ID */
  succeeded(header: Headers): void;
  /** @param error gets the request ID */
  failed(error: ConnectError): void;
}

/** A call that was not admitted. */
export interface RefusedCall {
  readonly method: DescMethod;
  readonly header: Headers;
  readonly error: ConnectError;
  readonly durationMs: number;
}

export interface ObserverDeps {
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly requestIds: RequestIds;
  readonly tracing?: Tracing | undefined;
}

export function createObserver({ metrics, logger, requestIds, tracing }: ObserverDeps): Observer {
  const end: EndCall = (call, error) => {
    const durationMs = performance.now() - call.startedMs;
    metrics.callEnded(call.method, error && { code: error.code, reason: findReason(error) }, durationMs);
    call.span?.end(error);
    const faulty = error !== undefined && isServerFault(error);
    if (faulty || logger.isLevelEnabled("debug")) logCall(logger, { ...call, durationMs, error }, faulty);
  };
  const start = ({ method, header, contextValues, sinceMs = 0 }: CallToObserve): StartedCall => {
    metrics.callStarted(method);
    const requestId = requestIds.choose(header.get(requestIdHeader));
    contextValues?.set(requestIdKey, requestId);
    const span = tracing?.startCall({ method, header, requestId, sinceMs });
    if (span !== undefined) contextValues?.set(callSpanKey, span);
    return new StartedCall({ method, header, requestId, span, startedMs: performance.now() - sinceMs }, end);
  };
  return {
    start,
    streamInterceptor: (next) => async (req) => {
      if (!req.stream) return next(req);
      const call = start(req);
      try {
        const res = await next(req);
        res.header.set(requestIdHeader, call.requestId);
        if (!res.stream) return res;
        const finish = (thrown?: unknown): void =>
          call.end(thrown === undefined ? undefined : ConnectError.from(thrown));
        return { ...res, message: endOnAbort(mapStream(res.message, { end: finish }), req.signal) };
      } catch (thrown) {
        const error = ConnectError.from(thrown);
        call.failed(error);
        throw error;
      }
    },
    refused({ method, header, error, durationMs }) {
      start({ method, header, sinceMs: durationMs }).failed(error);
    },
  };
}

/** A call, and its context values if its handler will run. */
interface CallToObserve extends Pick<RefusedCall, "method" | "header"> {
  readonly contextValues?: ContextValues;
  /** Milliseconds since it began. Default: 0. */
  readonly sinceMs?: number;
}

/** What is known of a call when it starts. */
interface CallStart {
  readonly method: DescMethod;
  readonly requestId: string;
  readonly header: Headers;
  /** Undefined if the call is not traced. */
  readonly span: CallSpan | undefined;
  readonly startedMs: number;
}

type EndCall = (start: CallStart, error: ConnectError | undefined) => void;

class StartedCall implements ObservedCall {
  readonly #start: CallStart;
  readonly #end: EndCall;

  constructor(start: CallStart, end: EndCall) {
    this.#start = start;
    this.#end = end;
  }

  get requestId(): string {
    return this.#start.requestId;
  }

  end(error: ConnectError | undefined): void {
    this.#end(this.#start, error);
  }

  succeeded(answer: Headers): void {
    this.end(undefined);
    answer.set(requestIdHeader, this.requestId);
  }

  failed(error: ConnectError): void {
    this.end(error);
    error.metadata.set(requestIdHeader, this.requestId);
  }
}

interface EndedCall {
  readonly method: DescMethod;
  readonly requestId: string;
  readonly header: Headers;
  readonly durationMs: number;
  readonly span: CallSpan | undefined;
  readonly error: ConnectError | undefined;
}

/** Writes one line: a server fault with its cause; at debug level also refusals and successes. */
function logCall(logger: Logger, call: EndedCall, isFault: boolean): void {
  const { method, requestId, durationMs, header, span, error } = call;
  const line = {
    method: `${method.parent.typeName}/${method.name}`,
    requestId,
    durationMs: Math.round(durationMs * 1000) / 1000,
    ...readTraceIds(header),
    // A traced call has its own span, in its caller's trace or a new one.
    ...(span && { traceId: span.traceId, spanId: span.spanId }),
    ...(error && { code: Code[error.code], reason: findReason(error), message: error.rawMessage }),
  };
  if (isFault) logger.error({ ...line, err: error?.cause ?? error }, "call failed");
  else logger.debug(line, error ? "call refused" : "call ended");
}

/**
 * Logs a server fault outside the interceptors, such as an answer that cannot be written. The interceptor
 * logs all other faults.
 *
 * @param identify returns the request ID; called only if the error is logged
 */
export function logUnobserved(logger: Logger, error: ConnectError, identify?: () => string): void {
  if (error.metadata.has(requestIdHeader) || !isServerFault(error)) return;
  const line = { code: Code[error.code], err: error.cause ?? error };
  logger.error(
    identify === undefined ? line : { requestId: identify(), ...line },
    "call failed outside its handler",
  );
}

/** Extracts the identifiers from a W3C trace context (Trace Context, section 3.2). */
function readTraceIds(header: Headers): { traceId?: string; parentId?: string } {
  const [, traceId, parentId] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(header.get("traceparent") ?? "") ?? [];
  return traceId === undefined || parentId === undefined ? {} : { traceId, parentId };
}
