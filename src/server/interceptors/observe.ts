/** Counts and logs every call with its outcome, and gives it a request ID that the caller can quote. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ContextValues, Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import { type CallSpan, callSpanKey, type Tracing } from "../../calls/call-span.ts";
import { requestIdKey } from "../../calls/call-values.ts";
import { findReason, isServerFault } from "../../errors.ts";
import { describeSystemError } from "../../system-error.ts";
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

/** A call that was not admitted. */
export interface RefusedCall {
  readonly method: DescMethod;
  readonly header: Headers;
  readonly error: ConnectError;
  readonly durationMs: number;
  /** Get the request ID, which the answer must have too. */
  readonly contextValues?: ContextValues;
}

export interface ObserverDeps {
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly requestIds: RequestIds;
  readonly tracing?: Tracing | undefined;
}

export function createObserver(deps: ObserverDeps): Observer {
  return {
    start: (req) => new ObservedCall(deps, req),
    streamInterceptor: (next) => async (req) => {
      if (!req.stream) return next(req);
      const call = new ObservedCall(deps, req);
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
    refused: ({ error, ...call }) => new ObservedCall(deps, call).failed(error),
  };
}

interface CallToObserve extends Pick<RefusedCall, "method" | "header" | "contextValues"> {
  /** Milliseconds since it began. Default: 0. */
  readonly durationMs?: number;
}

/** A running call. It must end exactly once. */
export class ObservedCall {
  readonly requestId: string;
  readonly #deps: ObserverDeps;
  readonly #method: DescMethod;
  readonly #header: Headers;
  /** Undefined if the call is not traced. */
  readonly #span: CallSpan | undefined;
  readonly #startedMs: number;

  constructor(deps: ObserverDeps, { method, header, contextValues, durationMs = 0 }: CallToObserve) {
    const { metrics, requestIds, tracing } = deps;
    metrics.callStarted(method);
    this.#deps = deps;
    this.#method = method;
    this.#header = header;
    this.#startedMs = performance.now() - durationMs;
    this.requestId = requestIds.choose(header.get(requestIdHeader));
    contextValues?.set(requestIdKey, this.requestId);
    this.#span = tracing?.startCall({ method, header, requestId: this.requestId, sinceMs: durationMs });
    if (this.#span !== undefined) contextValues?.set(callSpanKey, this.#span);
  }

  /** @param answer the response headers, which get the request ID */
  succeeded(answer: Headers): void {
    this.end(undefined);
    answer.set(requestIdHeader, this.requestId);
  }

  /** @param error gets the request ID */
  failed(error: ConnectError): void {
    this.end(error);
    error.metadata.set(requestIdHeader, this.requestId);
  }

  end(error: ConnectError | undefined): void {
    const { metrics, logger } = this.#deps;
    const durationMs = performance.now() - this.#startedMs;
    metrics.callEnded(this.#method, error && { code: error.code, reason: findReason(error) }, durationMs);
    this.#span?.end(error);
    const isFault = error !== undefined && isServerFault(error);
    if (isFault || logger.isLevelEnabled("debug")) this.#log(durationMs, error, isFault);
  }

  /** Writes one line: a server fault with its cause; at debug level also refusals and successes. */
  #log(durationMs: number, error: ConnectError | undefined, isFault: boolean): void {
    const span = this.#span;
    const line = {
      method: `${this.#method.parent.typeName}/${this.#method.name}`,
      requestId: this.requestId,
      durationMs: Math.round(durationMs * 1000) / 1000,
      ...readTraceIds(this.#header),
      // A traced call has its own span, in its caller's trace or a new one.
      ...(span && { traceId: span.traceId, spanId: span.spanId }),
      ...(error && { code: Code[error.code], reason: findReason(error), message: error.rawMessage }),
    };
    const { logger } = this.#deps;
    if (error !== undefined && isFault) logger.error({ ...line, ...describeCause(error) }, "call failed");
    else logger.debug(line, error ? "call refused" : "call ended");
  }
}

/**
 * Logs a server fault outside the interceptors, such as an answer that cannot be written. The interceptor
 * logs all other faults.
 *
 * @param identify returns the request ID; called only if the error is logged
 */
export function logUnobserved(logger: Logger, error: ConnectError, identify?: () => string): void {
  if (error.metadata.has(requestIdHeader) || !isServerFault(error)) return;
  const line = { code: Code[error.code], ...describeCause(error) };
  logger.error(
    identify === undefined ? line : { requestId: identify(), ...line },
    "call failed outside its handler",
  );
}

/** While the database is down, every call fails: a stack in each line would only fill the disk of the log. */
function describeCause(error: ConnectError): { readonly err?: unknown; readonly cause?: string } {
  const err = error.cause ?? error;
  return findReason(error) === "STORE_UNAVAILABLE" ? { cause: describeSystemError(err) } : { err };
}

/** Extracts the identifiers from a W3C trace context (Trace Context, section 3.2). */
function readTraceIds(header: Headers): { traceId?: string; parentId?: string } {
  const [, traceId, parentId] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(header.get("traceparent") ?? "") ?? [];
  return traceId === undefined || parentId === undefined ? {} : { traceId, parentId };
}
