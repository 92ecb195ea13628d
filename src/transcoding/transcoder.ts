/**
 * Serves RPCs as REST calls, based only on their google.api.http options.
 *
 *     target → router → binding → the RPC with its interceptors → rendering
 *
 * It works with any descriptors and implementations and depends on no service. It has its own small HTTP
 * types (RestRequest, RestResponse), which src/server/protocols/rest.ts connects to exchanges.
 */
import { createRegistry, type DescMethod, type Registry } from "@bufbuild/protobuf";
import type { ConnectError, Interceptor, ServiceImplSpec } from "@connectrpc/connect";
import { findAbsentCall } from "../calls/absent-services.ts";
import type { RestStyle, ServiceProfiles } from "../calls/service-profile.ts";
import { refuse, toConnectError } from "../errors.ts";
import type { BodyLimits } from "./body.ts";
import type { FoundRoute, Setup } from "./call-context.ts";
import { collectServiceFiles } from "./descriptors.ts";
import {
  emptyResponse,
  failureResponse,
  type RestRequest,
  type RestResponse,
  splitTarget,
  type Target,
  withoutContent,
} from "./http.ts";
import { acceptQueryHeader, listQueryTypes } from "./query-method.ts";
import { createRouter, type PathConvention, type RouteMatch, type Router } from "./router.ts";
import { compileRoutes, type Route } from "./routes.ts";
import { runStream } from "./stream.ts";

export interface TranscoderOptions extends BodyLimits {
  /** Maximum bytes of a message, unless the rules of its call set a smaller limit. */
  readonly maxBytes: number;
  /** Descriptors and implementations: `createServiceImplSpec(Service, implementation)` from Connect. */
  readonly services: readonly ServiceImplSpec[];
  /** Facts about services that their protos do not state. */
  readonly profiles?: ServiceProfiles | undefined;
  /** Run for every call, outermost first, as Connect runs them for RPCs. */
  readonly interceptors?: readonly Interceptor[];
  /** How paths match templates. Default: as in Google's transcoders. */
  readonly pathConvention?: PathConvention | undefined;
  /** Aborts the signals of all running calls. */
  readonly shutdownSignal?: AbortSignal;
  /** Receives every error sent to a caller, its request, and the RPC if known. */
  readonly onError?: (error: ConnectError, request: RestRequest, method: DescMethod | undefined) => void;
}

/** The part of a request that identifies its call. */
export type RequestLine = Pick<RestRequest, "method" | "target">;

/** Answers REST requests. */
export interface Transcoder {
  /** Every route, for the log and the API description. */
  readonly routes: readonly Route[];
  /** The types of all messages and error details. */
  readonly registry: Registry;
  /** Finds the route of a request; undefined if there is none. */
  find(httpMethod: string, target: Target): FoundRoute | undefined;
  /** Answers a stream, or refuses a request without a route; never throws. The server runs unary calls. */
  handle(request: RestRequest, found: FoundRoute | undefined): Promise<RestResponse>;
  /**
   * Renders an error from outside the transcoder in the same form.
   *
   * @param request its service decides the conventions; default: our own
   */
  renderFailure(error: ConnectError, request?: RequestLine): RestResponse;
}

/**
 * Creates a transcoder.
 *
 * @throws Error naming the RPC (both RPCs for a conflict) if a rule could never work
 */
export function createTranscoder(options: TranscoderOptions): Transcoder {
  const routes = compileRoutes(options.services, options.profiles);
  const { profiles = {} } = options;
  const router = createRouter(routes, options.pathConvention);
  const setup = createSetup(options);
  const findStyle = createStyleFinder(router, routes);
  const renderFailure = (error: ConnectError, request?: RequestLine): RestResponse =>
    failureResponse(error, setup.registry, request === undefined ? "own" : findStyle(request));

  const answer = async (request: RestRequest, found: FoundRoute | undefined): Promise<RestResponse> => {
    if (found !== undefined) return runStream({ request, ...found, setup });
    const { path } = splitTarget(request.target);
    if (path === "*") return answerAsterisk(request.method);
    const absent = findAbsentCall(path, profiles);
    if (absent !== undefined) throw absent;
    const match = router.match(request.method, path);
    if (match.route !== undefined) throw new Error(`${match.route.origin} was not searched for`);
    const allow = allowedMethods(match.methods);
    if (allow === "") throw refuse("ROUTE_NOT_FOUND", `the path ${path} does not exist`, { path });
    const query = findMatch(router, "QUERY", path)?.route;
    const supported = { allow, ...(query && { [acceptQueryHeader]: listQueryTypes(query) }) };
    if (request.method === "OPTIONS") return emptyResponse(supported);
    const error = refuse("METHOD_NOT_ALLOWED", `${path} supports ${allow}, not ${request.method}`, { allow });
    for (const [name, value] of Object.entries(supported)) error.metadata.set(name, value);
    throw error;
  };

  return {
    routes,
    registry: setup.registry,
    renderFailure,
    find(httpMethod, { path, rawQuery }) {
      // For a call that the server does not have, the last segment of another route's pattern could match its
      // verb.
      const isAbsent = path.includes(":") && findAbsentCall(path, profiles) !== undefined;
      const match = isAbsent || path === "*" ? undefined : findMatch(router, httpMethod, path);
      return match && { match, rawQuery };
    },
    async handle(request, found) {
      const response = await answer(request, found).catch((thrown: unknown) => {
        const error = toConnectError(thrown);
        options.onError?.(error, request, found?.match.route.spec.method);
        return renderFailure(error, request);
      });
      return request.method === "HEAD" ? withoutContent(response) : response;
    },
  };
}

function createSetup(options: TranscoderOptions): Setup {
  const { services, interceptors = [], profiles = {}, shutdownSignal } = options;
  const registry = createRegistry(...collectServiceFiles(services.map(({ service }) => service)));
  return { limits: options, profiles, interceptors: [...interceptors], registry, shutdownSignal };
}

/**
 * Creates the function that finds the conventions for a refusal: the route's own or, without a route,
 * those shared by all routes with the same first segment.
 */
function createStyleFinder(
  router: Router<Route>,
  routes: readonly Route[],
): (request: RequestLine) => RestStyle {
  const byFirst = new Map<string, Set<RestStyle>>();
  for (const { template, style } of routes) {
    const [first] = template.segments;
    const name = first?.kind === "literal" ? first.text : "";
    byFirst.getOrInsert(name, new Set()).add(style);
  }
  return ({ method, target }) => {
    const { path } = splitTarget(target);
    const found = findMatch(router, method, path);
    if (found !== undefined) return found.route.style;
    const [only = "own", ...others] = byFirst.get(path.split("/")[1] ?? "") ?? [];
    return others.length === 0 ? only : "own";
  };
}

/** The router throws if a path is not valid percent-encoded UTF-8. `handle` reports that error. */
function findMatch(router: Router<Route>, httpMethod: string, path: string): RouteMatch<Route> | undefined {
  try {
    const result = router.match(httpMethod, path);
    return result.route && result;
  } catch {
    return undefined;
  }
}

/** RFC 9112, section 3.2.4: the asterisk stands for the server itself, and only OPTIONS may use it. */
function answerAsterisk(method: string): RestResponse {
  if (method === "OPTIONS") return emptyResponse();
  throw refuse("TARGET_INVALID", `the target "*" works only with OPTIONS, not with ${method}`);
}

function allowedMethods(methods: readonly string[]): string {
  if (methods.length === 0) return "";
  const all = new Set(methods);
  if (all.has("GET")) all.add("HEAD");
  all.add("OPTIONS");
  return [...all].sort().join(", ");
}
