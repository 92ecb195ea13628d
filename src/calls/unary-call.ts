/**
 * One unary call over any protocol: the context of its handler, its deadline and its end.
 *
 * Connect's own handlers compose the interceptors again for each call, and give each call several
 * controllers, timers and Headers. Together these cost more than the rest of the call.
 */
import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import type {
  ContextValues,
  HandlerContext,
  Interceptor,
  MethodImplSpec,
  StreamRequest,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import { CallHeaders } from "./call-headers.ts";
import { Expiries, type Expiring, type Place } from "./live-list.ts";
import { deadlineExceeded } from "./timeout.ts";

export type UnarySpec = MethodImplSpec & { kind: "unary" };

/** What is known of a call when it arrives. */
export interface ArrivedCall {
  readonly method: DescMethodUnary;
  readonly protocolName: string;
  /** The HTTP method. */
  readonly requestMethod: string;
  readonly url: string;
  readonly requestHeader: Headers;
  readonly values: ContextValues;
}

/**
 * Aborts the signal of a finished call. Shared, because an error with a stack for each call would be costly.
 */
export const finished = new Error("the call has ended");

/** The unary calls in progress. */
export class RunningCalls extends Expiries<UnaryCall> {
  /** @param shutdownSignal ends all calls when the server stops */
  constructor(shutdownSignal: AbortSignal | undefined) {
    super();
    shutdownSignal?.addEventListener("abort", () => {
      for (const call of this.items()) call.abort(shutdownSignal.reason);
    });
  }
}

/**
 * A call in progress, until `finish`. It ends by `finish`, by `abort` or by its deadline; only the first
 * counts.
 */
export class UnaryCall implements HandlerContext, Expiring {
  readonly method: DescMethodUnary;
  readonly service: HandlerContext["service"];
  readonly protocolName: string;
  readonly requestMethod: string;
  readonly url: string;
  readonly requestHeader: Headers;
  readonly values: ContextValues;
  readonly responseHeader = new CallHeaders();
  readonly responseTrailer = new CallHeaders();
  /** The request for the interceptors. Interceptors that change it pass on a copy. */
  request: UnaryRequest | undefined;
  expiresAtMs = Number.POSITIVE_INFINITY;
  readonly #place: Place;
  #deadlineMs: number | undefined;
  #expiry: (() => unknown) | undefined;
  /** Why the call ended, once it has. */
  #end: { readonly reason: unknown } | undefined;
  /** Created when code first asks for the signal: few handlers do, and creating one takes a microsecond. */
  #controller: AbortController | undefined;
  #endWait: ((reason: unknown) => void) | undefined;

  constructor(arrived: ArrivedCall, running: RunningCalls) {
    this.method = arrived.method;
    this.service = arrived.method.parent;
    this.protocolName = arrived.protocolName;
    this.requestMethod = arrived.requestMethod;
    this.url = arrived.url;
    this.requestHeader = arrived.requestHeader;
    this.values = arrived.values;
    this.#place = running.add(this);
  }

  /** Aborts when the call ends. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#end !== undefined) this.#controller.abort(this.#end.reason);
    }
    return this.#controller.signal;
  }

  /**
   * Returns an unbound function, because handlers may take it out of the context. Created for the few that
   * ask for it.
   */
  get timeoutMs(): () => number | undefined {
    return () => this.#deadlineMs && this.#deadlineMs - performance.now();
  }

  /** Sets the caller's deadline, in milliseconds from now. It applies from the next `endWithin` on. */
  setDeadline(timeoutMs: number): void {
    this.#deadlineMs = performance.now() + timeoutMs;
  }

  /**
   * Ends the call at its deadline, or earlier at a server limit. Replaces the previous limit.
   *
   * @param limitMs milliseconds from now; Infinity for no limit
   */
  endWithin(limitMs: number, limitExceeded: () => unknown): void {
    if (this.#end !== undefined) return;
    const nowMs = performance.now();
    const limitAtMs = nowMs + limitMs;
    const isLimitFirst = this.#deadlineMs === undefined || limitAtMs < this.#deadlineMs;
    this.#expiry = isLimitFirst ? limitExceeded : deadlineExceeded;
    this.expiresAtMs = isLimitFirst ? limitAtMs : (this.#deadlineMs ?? limitAtMs);
    if (this.expiresAtMs <= nowMs) this.expire();
  }

  expire(): void {
    this.abort(this.#expiry?.());
  }

  /** Ends the call early. Its handler may keep running, but its answer no longer counts. */
  abort(reason: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = { reason };
    this.expiresAtMs = Number.POSITIVE_INFINITY;
    this.#controller?.abort(reason);
    this.#endWait?.(reason);
  }

  /** Ends the call after its handler. */
  finish(): void {
    this.#endWait = undefined;
    this.abort(finished);
    this.#place.leave();
  }

  /** @throws the reason for which the call has ended */
  throwIfEnded(): void {
    if (this.#end !== undefined) throw this.#end.reason;
  }

  /** Waits for a promise or the early end of the call. Only one wait at a time. */
  race<T>(promise: Promise<T>): Promise<T> {
    const waiting = Promise.withResolvers<T>();
    promise.then(waiting.resolve, waiting.reject);
    return this.waitFor(waiting);
  }

  /** Waits for a promise, which the early end of the call rejects. Only one wait at a time. */
  waitFor<T>({ promise, reject }: PromiseWithResolvers<T>): Promise<T> {
    this.#endWait = reject;
    if (this.#end !== undefined) reject(this.#end.reason);
    return promise;
  }
}

/** Runs the interceptors and the handler of one method. */
export type UnaryHandler = (call: UnaryCall, message: Message) => Promise<Message>;

/** Under this key a request carries its call past interceptors that copy the request. */
const callKey = Symbol("call");

/**
 * The request for the interceptors. It uses the signal of the call, which is created on first use. Copies of
 * a request lack the signal; their handlers get it all the same.
 */
class RequestOfCall implements UnaryRequest {
  readonly [callKey]: UnaryCall;
  readonly stream = false;
  readonly service: UnaryRequest["service"];
  readonly method: UnaryRequest["method"];
  readonly requestMethod: string;
  readonly url: string;
  readonly header: Headers;
  readonly contextValues: ContextValues;
  readonly message: Message;

  constructor(call: UnaryCall, message: Message) {
    this[callKey] = call;
    this.service = call.service;
    this.method = call.method;
    this.requestMethod = call.requestMethod;
    this.url = call.url;
    this.header = call.requestHeader;
    this.contextValues = call.values;
    this.message = message;
  }

  get signal(): AbortSignal {
    return this[callKey].signal;
  }
}

/** Composes the interceptors, outermost first, and the handler of a method. */
export function composeUnary(spec: UnarySpec, interceptors: readonly Interceptor[]): UnaryHandler {
  const handle = async (req: UnaryRequest | StreamRequest): Promise<UnaryResponse> => {
    const call = (req as RequestOfCall)[callKey];
    // A finished call must have no side effects.
    call.throwIfEnded();
    const output = spec.impl(req.message as Message, contextFor(call, req));
    const message = output instanceof Promise ? await call.race(output) : output;
    return {
      stream: false,
      service: call.service,
      method: call.method,
      header: call.responseHeader,
      trailer: call.responseTrailer,
      message: create(spec.method.output, message),
    };
  };
  const run = interceptors.reduceRight<ReturnType<Interceptor>>((next, one) => one(next), handle);
  return async (call, message) => {
    const req = new RequestOfCall(call, message);
    call.request = req;
    const res = await run(req);
    if (res.stream) throw new Error(`an interceptor returned a stream for ${call.method.name}`);
    copyHeaders(res.header, call.responseHeader);
    copyHeaders(res.trailer, call.responseTrailer);
    return res.message;
  };
}

/** The context for a handler: the call itself, or a copy with what interceptors replaced. */
function contextFor(call: UnaryCall, req: UnaryRequest | StreamRequest): HandlerContext {
  if (req === call.request) return call;
  return {
    service: call.service,
    method: call.method,
    protocolName: call.protocolName,
    requestMethod: call.requestMethod,
    url: call.url,
    requestHeader: req.header,
    responseHeader: call.responseHeader,
    responseTrailer: call.responseTrailer,
    values: req.contextValues,
    // A copy has a signal only if an interceptor gave it one.
    signal: Object.hasOwn(req, "signal") ? req.signal : call.signal,
    timeoutMs: call.timeoutMs,
  };
}

function copyHeaders(from: Headers, to: Headers): void {
  if (from === to) return;
  for (const name of [...to.keys()]) to.delete(name);
  from.forEach((value, name) => {
    to.append(name, value);
  });
}
