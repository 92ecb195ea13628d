/** The context of one call. */
import type { Registry } from "@bufbuild/protobuf";
import { createHandlerContext, type Interceptor, type MethodImplSpec } from "@connectrpc/connect";
import { readTimeout } from "../protocol/timeout.ts";
import type { RunningCalls, UnaryHandler } from "../protocol/unary-call.ts";
import type { BodyLimits } from "./body.ts";
import type { RestRequest } from "./http.ts";
import type { JsonForm, Renderer } from "./rendering.ts";
import type { RouteMatch } from "./router.ts";
import type { Route } from "./routes.ts";

/** The parts of a server that its calls share. */
export interface Setup {
  /** The limits of the body of each RPC. */
  readonly limits: ReadonlyMap<MethodImplSpec, BodyLimits>;
  readonly interceptors: Interceptor[];
  readonly registry: Registry;
  readonly shutdownSignal: AbortSignal | undefined;
  /** Milliseconds that the handler of a unary call may take; undefined for no limit. */
  readonly maxCallMs: number | undefined;
  /** The interceptors and the handler of each unary RPC. */
  readonly handlers: ReadonlyMap<MethodImplSpec, UnaryHandler>;
  /** By route, because the conventions of services differ. */
  readonly renderers: ReadonlyMap<Route, Renderer>;
  /** The unary calls in progress. */
  readonly running: RunningCalls;
}

/** One call in progress. */
export interface Call {
  readonly request: RestRequest;
  readonly match: RouteMatch<Route>;
  readonly rawQuery: string;
  /** How the caller wants the answer; undefined for the plain form. */
  readonly form?: JsonForm | undefined;
  readonly setup: Setup;
}

/** Shared by all calls that end, because an abort without a reason creates an error with a stack. */
export const finished = new Error("the call has ended");

/** A HandlerContext that can be ended. */
export type CallContext = ReturnType<typeof createHandlerContext>;

/** Creates the context of a call, with the caller's deadline. @throws TIMEOUT_INVALID */
export function createContext({ request, match, setup }: Call): CallContext {
  const timeoutMs = readTimeout(request.headers);
  return createHandlerContext({
    service: match.route.spec.method.parent,
    method: match.route.spec.method,
    protocolName: "rest",
    requestMethod: request.method,
    url: request.target,
    requestHeader: request.headers,
    requestSignal: request.signal,
    ...(request.contextValues === undefined ? {} : { contextValues: request.contextValues }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(setup.shutdownSignal === undefined ? {} : { shutdownSignal: setup.shutdownSignal }),
  });
}
