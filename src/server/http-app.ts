/**
 * The Fastify application: Connect's handlers, pages and probes. The transcoder answers all other requests.
 */
import { createRegistry, type DescMethod, type Registry } from "@bufbuild/protobuf";
import { Code, type ConnectError, type Interceptor, type ServiceImplSpec } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import Fastify, { type FastifyError, type FastifyInstance } from "fastify";
import { findReason, refuse, toConnectError } from "../errors.ts";
import { findAbsentCall } from "../protocol/absent-services.ts";
import { metricsScope } from "../protocol/service-profile.ts";
import { collectFiles, errorFiles } from "../transcoding/descriptors.ts";
import { type RestResponse, splitTarget } from "../transcoding/http.ts";
import type { Route } from "../transcoding/routes.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import { addServices, requestGate, tightenHandlers } from "./connect.ts";
import { type CallForm, readCallForm, renderFailure, restForm } from "./failures.ts";
import type { HealthBoard } from "./health.ts";
import type { Intake } from "./intake.ts";
import { scopeMissing } from "./interceptors/access.ts";
import { chargeTo } from "./interceptors/caller.ts";
import { findMaxBytes, type ServerLimits, toStructureLimits } from "./limits.ts";
import type { Metrics } from "./metrics.ts";
import type { NodeRequest, NodeResponse, RequestHandler } from "./node-http.ts";
import type { ServerOptions } from "./options.ts";
import {
  createPathMethods,
  isKnownMethod,
  methodNotAllowed,
  methodUnknown,
  type PathMethods,
  routedMethods,
} from "./path-methods.ts";
import { type RequestIds, requestIdHeader } from "./request-ids.ts";
import { serveRest, writeResponse } from "./rest.ts";

/**
 * Connect compresses answers of at least this size for clients that accept it. Keys, signatures and ciphertexts do
 * not shrink. Long lists do.
 */
const compressMinBytes = 64 * 1024;

/** "package.Service/Method". */
export function methodName({ name, parent }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** The parts of the Fastify application. */
export interface AppDeps {
  readonly services: readonly ServiceImplSpec[];
  readonly interceptors: Interceptor[];
  readonly transcoder: Transcoder;
  readonly health: HealthBoard;
  readonly metrics: Metrics;
  readonly limits: ServerLimits;
  readonly shutdown: AbortController;
  readonly intake: Intake;
  readonly requestIds: RequestIds;
  readonly options: ServerOptions;
}

/** The application, ready to serve. */
export interface ServingApp {
  readonly app: FastifyInstance;
  /** Serves an admitted request: a REST call, or with Fastify a page or a call of Connect's protocols. */
  readonly serve: RequestHandler;
}

/** Creates the application, ready to serve. */
export async function createHttpApp(deps: AppDeps): Promise<ServingApp> {
  const { services, transcoder, intake, options } = deps;
  const pathMethods = createPathMethods();
  const fallBack = createFallBack(deps, pathMethods);
  const app = createBareApp(deps, fallBack);
  const isRpc = new Set(
    services.flatMap(({ methods }) => Object.values(methods).map(({ method }) => `/${methodName(method)}`)),
  );
  app.addHook("onRoute", ({ url, method }) => {
    if (!isRpc.has(url)) pathMethods.add(url, [method].flat());
  });
  const files = collectFiles([...services.map(({ service }) => service.file), ...errorFiles]);
  const index = listRoutes(transcoder.routes);
  for (const mount of options.pages ?? []) {
    await mount(app, {
      services: options.services,
      profiles: options.profiles ?? {},
      files,
      transcoder,
      index,
    });
  }
  if (!transcoder.routes.some(matchesRoot) && !app.hasRoute({ method: "GET", url: "/" })) {
    app.get("/", (_request, reply) => reply.type("text/plain").send(index));
  }
  addProbes(app, deps);
  await addConnect(app, deps, createRegistry(...files), pathMethods);
  await app.ready();
  return {
    app,
    serve(req, res) {
      const route = intake.routeOf(req);
      // A page keeps its path, also if a template matches it.
      const isRest = route !== undefined && !pathMethods.has(splitTarget(req.url ?? "").path);
      // Fastify throws for unknown methods.
      if (!isRest && routedMethods.has(req.method ?? "")) return app.routing(req, res);
      if (!isRest) return fallBack(req, res);
      serveRest(deps, req, res, intake.valuesOf(req), route).catch((error: unknown) =>
        intake.breakOff(req, res, error),
      );
    },
  };
}

/** The transcoder answers requests that Fastify has no route for or cannot read. */
function createFallBack(deps: AppDeps, pathMethods: PathMethods): RequestHandler {
  const { transcoder, requestIds, intake, options } = deps;
  const { profiles = {} } = options;
  const serve = async (req: NodeRequest, res: NodeResponse): Promise<void> => {
    const { method = "", url = "" } = req;
    const form = readCallForm(req, false);
    const renderRest = (error: ConnectError): RestResponse =>
      transcoder.renderFailure(error, { method, target: url });
    const refuseIn = (form: CallForm, error: ConnectError): Promise<void> =>
      writeResponse(
        res,
        renderFailure(form, requestIds.mark(error, req.headers[requestIdHeader]), renderRest),
      );
    if (!isKnownMethod(method)) return refuseIn(restForm, methodUnknown(method));
    const { path } = splitTarget(url);
    const isCall = form.protocol !== "rest";
    const allow = pathMethods.allowInstead(method, path);
    if (allow !== undefined && !(isCall && method === "POST"))
      return refuseIn(restForm, methodNotAllowed(method, path, allow));
    if (isCall) return refuseIn(form, findAbsentCall(path, profiles) ?? rpcNotFound(path));
    return serveRest(deps, req, res, intake.valuesOf(req));
  };
  return (req, res) => void serve(req, res).catch((error: unknown) => intake.breakOff(req, res, error));
}

function rpcNotFound(path: string): ConnectError {
  return refuse("RPC_NOT_FOUND", `the RPC ${path} does not exist`, { path });
}

/** Fastify without routes, whose own answers are replaced by ours. */
function createBareApp(
  { transcoder, requestIds, intake, options }: AppDeps,
  fallBack: RequestHandler,
): FastifyInstance {
  const app = Fastify({
    logger: false,
    // The code that reads bodies limits them.
    bodyLimit: Number.MAX_SAFE_INTEGER,
    frameworkErrors: (_error, { raw }, reply) => {
      reply.hijack();
      fallBack(raw, reply.raw as NodeResponse);
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null, undefined));
  app.setNotFoundHandler(({ raw }, reply) => {
    reply.hijack();
    fallBack(raw, reply.raw);
  });
  app.setErrorHandler(async (thrown: FastifyError, { raw }, reply) => {
    reply.hijack();
    // The media type is the only part of a request that Fastify still reads itself.
    const isRefusal = thrown.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE";
    const type = raw.headers["content-type"] ?? "";
    const error = isRefusal
      ? refuse("MEDIA_TYPE_UNSUPPORTED", `content-type "${type}" is not a media type`, { contentType: type })
      : toConnectError(options.explainFailure?.(thrown) ?? thrown);
    const requestId = requestIds.identify(intake.valuesOf(raw), raw.headers[requestIdHeader]);
    error.metadata.set(requestIdHeader, requestId);
    if (error.code === Code.Internal || findReason(error) === undefined)
      options.logger.error({ requestId, err: thrown, target: raw.url }, "request failed outside any call");
    const { method = "", url: target = "" } = raw;
    await writeResponse(reply.raw, transcoder.renderFailure(error, { method, target }));
  });
  return app;
}

/** Adds the probes of supervisors, and the metrics for Prometheus. */
function addProbes(app: FastifyInstance, { health, metrics, options }: AppDeps): void {
  app.get("/livez", (_request, reply) => reply.type("text/plain").send("alive\n"));
  app.get("/readyz", (_request, reply) =>
    reply
      .code(health.problem === undefined ? 200 : 503)
      .type("text/plain")
      .send(`${health.problem ?? "ready"}\n`),
  );
  app.get("/metrics", async (request, reply) => {
    await requireMetricsReader(options, request.headers.authorization);
    const { contentType, text } = await metrics.expose();
    return reply.type(contentType).send(text);
  });
}

/** Adds the calls of gRPC, gRPC-Web and Connect. */
async function addConnect(
  app: FastifyInstance,
  { services, interceptors, transcoder, limits, shutdown, intake, requestIds, options }: AppDeps,
  registry: Registry,
  pathMethods: PathMethods,
): Promise<void> {
  await app.register(fastifyConnectPlugin, {
    interceptors,
    readMaxBytes: limits.maxMessageBytes,
    compressMinBytes,
    jsonOptions: { ignoreUnknownFields: false, alwaysEmitImplicit: true, registry },
    shutdownSignal: shutdown.signal,
    requestGate,
    contextValues: ({ raw }) => intake.valuesOf(raw),
    routes: (router) => {
      addServices(router, services);
      tightenHandlers(router, {
        limitsOf: (method) => ({
          maxBytes: findMaxBytes(method, limits, options.profiles),
          maxReceiveMs: limits.maxReceiveMs,
          structure: toStructureLimits(limits),
        }),
        registry,
        renderFailure: transcoder.renderFailure,
        requestIds,
      });
      for (const { requestPath, allowedMethods } of router.handlers) {
        pathMethods.add(requestPath, allowedMethods);
      }
    },
  });
}

/** @throws ROUTE_NOT_FOUND, ROLE_MISSING, SCOPE_MISSING, or what the access policy throws */
async function requireMetricsReader(
  { access, metricsAccess = "open" }: ServerOptions,
  authorization: string | undefined,
): Promise<void> {
  if (metricsAccess === "open") return;
  if (metricsAccess === "off" || access === undefined)
    throw refuse(
      "ROUTE_NOT_FOUND",
      "the path /metrics does not exist; start the server with --metrics to open it",
      {
        path: "/metrics",
      },
    );
  const caller = await chargeTo("tokens for /metrics", () => access.authenticate(authorization ?? null));
  const { role, scopes } = caller;
  if (scopes !== undefined && !scopes.includes(metricsScope))
    throw scopeMissing("/metrics", metricsScope, scopes);
  if (role === "auditor" || role === "admin") return;
  throw refuse(
    "ROLE_MISSING",
    `/metrics is for the role auditor or admin, and the token is of the role ${role}`,
    {
      role,
      roles: "auditor,admin",
    },
  );
}

/** Tells whether a route of an RPC has the path "/". */
function matchesRoot({ template }: Route): boolean {
  const [first] = template.segments;
  return first === undefined || first.kind === "rest";
}

/** The page that a browser shows at the server's address: every REST call and its RPC. */
function listRoutes(routes: readonly Route[]): string {
  const lines = routes.map(
    ({ httpMethod, template, origin }) => `${httpMethod.padEnd(6)} ${template.text.padEnd(40)} ${origin}`,
  );
  return `REST calls, and the RPCs that they are:\n\n${lines.join("\n")}\n`;
}
