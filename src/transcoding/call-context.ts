/** A routed request and the context of its stream. */
import type { Registry } from "@bufbuild/protobuf";
import { createHandlerContext, type Interceptor } from "@connectrpc/connect";
import type { ServiceProfiles } from "../calls/service-profile.ts";
import { readTimeout } from "../calls/timeout.ts";
import type { BodyLimits } from "./body.ts";
import type { RestRequest } from "./http.ts";
import type { JsonForm } from "./rendering.ts";
import type { RouteMatch } from "./router.ts";
import type { Route } from "./routes.ts";
import { readSystemParameters } from "./system-parameters.ts";

/** The route of a request, with its path variables and query. */
export interface FoundRoute {
  readonly match: RouteMatch<Route>;
  readonly rawQuery: string;
}

/** What all calls share. */
export interface Setup {
  /** The limits of all bodies. The rules of an RPC may set a smaller one. */
  readonly limits: BodyLimits;
  readonly profiles: ServiceProfiles;
  readonly interceptors: Interceptor[];
  readonly registry: Registry;
  readonly shutdownSignal: AbortSignal | undefined;
}

/** A stream in progress. */
export interface Call extends FoundRoute {
  readonly request: RestRequest;
  /** The format that the caller requests; undefined for the default. */
  readonly form?: JsonForm | undefined;
  readonly setup: Setup;
}

/**
 * Splits the query of a call into its fields and the requested form of the answer.
 *
 * @throws whatever readSystemParameters throws
 */
export function readForm({ match: { route }, rawQuery }: FoundRoute): Pick<Call, "rawQuery" | "form"> {
  return route.style === "google" ? readSystemParameters(route, rawQuery) : { rawQuery };
}

/** A HandlerContext whose call can be ended. */
export type CallContext = ReturnType<typeof createHandlerContext>;

/**
 * Creates the context of a call, with the caller's deadline.
 *
 * @throws TIMEOUT_INVALID
 */
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
