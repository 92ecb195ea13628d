/**
 * Serves services on one port, over gRPC, gRPC-Web, Connect and REST, with reflection, health and metrics.
 *
 * It takes descriptors and implementations and knows none of them.
 */
import type { AddressInfo } from "node:net";
import { createRegistry, type DescFile, type DescMethod } from "@bufbuild/protobuf";
import type { ConnectError, Interceptor, ServiceImplSpec } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { Logger } from "pino";
import { reasonOf, refuse, refuseStopping, toConnectError } from "../errors.ts";
import { defaultStructureLimits, type StructureLimits } from "../protocol/structure-limits.ts";
import { collectFiles, errorFiles } from "../transcoding/descriptors.ts";
import { splitTarget } from "../transcoding/http.ts";
import type { RoutingOrder } from "../transcoding/router.ts";
import type { Route } from "../transcoding/routes.ts";
import { createTranscoder, type Transcoder } from "../transcoding/transcoder.ts";
import { createAdmission } from "./admission.ts";
import { createBrowserHeaders } from "./browser.ts";
import { createReadClient } from "./client-address.ts";
import { addServices, messageInterceptor, requestGate, tightenHandlers } from "./connect.ts";
import { type CallForm, formOf, renderFailure, restForm } from "./failures.ts";
import { createGrpcUnaryHandler } from "./grpc-unary.ts";
import { createHealthBoard, type HealthBoard } from "./health.ts";
import { createIntake, type Intake } from "./intake.ts";
import {
  type AccessPolicy,
  isInfrastructure,
  requireAccess,
  streamAccessInterceptor,
} from "./interceptors/access.ts";
import { callerInterceptor, chargeTo } from "./interceptors/caller.ts";
import { deadlineInterceptor } from "./interceptors/deadline.ts";
import { drainInterceptor } from "./interceptors/drain.ts";
import { type ExplainFailure, errorInterceptor } from "./interceptors/errors.ts";
import { idempotencyInterceptor } from "./interceptors/idempotency.ts";
import { createObserver, logUnobserved, type Observer } from "./interceptors/observe.ts";
import { statusInterceptor } from "./interceptors/status.ts";
import { validationInterceptor } from "./interceptors/validation.ts";
import { createListener } from "./listener.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import type { NodeRequest, NodeResponse, RequestHandler } from "./node-http.ts";
import {
  createPathMethods,
  isKnownMethod,
  refuseMethod,
  refuseUnknownMethod,
  routedMethods,
} from "./path-methods.ts";
import { createReflection } from "./reflection.ts";
import type { HeadPolicy } from "./request-head.ts";
import { serveRest, writeResponse } from "./rest.ts";
import { readTlsOptions, type TlsFiles, watchTls } from "./tls.ts";
import { createUnreadResponses } from "./unread-responses.ts";

/** What bounds requests and calls. */
export interface ServerLimits {
  /** Bytes of all names and values of a request's metadata; 16,384 by default. */
  readonly maxMetadataBytes: number;
  /** Bytes of a body, or of one message of a stream; 4 MiB by default. */
  readonly maxMessageBytes: number;
  /** JSON values, or Protobuf fields and elements, of a message; 20,000 by default. */
  readonly maxMessageElements: number;
  /** Protobuf fields of a message that its type does not declare; 1,000 by default. */
  readonly maxUnknownFields: number;
  /** Milliseconds for the headers of a request to arrive; 15,000 by default. */
  readonly maxHeaderMs: number;
  /** Milliseconds for the body of a unary request to arrive; 30,000 by default. */
  readonly maxReceiveMs: number;
  /** Milliseconds that a unary call may take; 30,000 by default. A caller's shorter deadline goes before. */
  readonly maxCallMs: number;
  /** Milliseconds that running calls have to finish when the server stops; 30,000 by default. */
  readonly maxDrainMs: number;
  /** Unary calls at a time; 1000 by default. */
  readonly maxCalls: number;
  /** Streams at a time; 10,000 by default. */
  readonly maxStreams: number;
  /** Unary calls at a time of one user or address; 0, the default, for no limit. */
  readonly maxCallsPerUser: number;
  /** Streams at a time of one user or address; 0, the default, for no limit. */
  readonly maxStreamsPerUser: number;
  /** Calls a second of each client; 0, the default, for no limit. */
  readonly maxCallsPerSecond: number;
  /** Connections at a time; 20,000 by default. */
  readonly maxConnections: number;
  /** Bytes that all unfinished requests may hold; 256 MiB by default. */
  readonly maxBufferedBytes: number;
  /** Bytes that the unfinished requests, or the unread responses, of one client may hold; 64 MiB by default. */
  readonly maxBufferedBytesPerClient: number;
  /** Milliseconds that a response may wait for a client that reads nothing; 20,000 by default. */
  readonly maxWriteMs: number;
}

/** What a server is made of. */
export interface ServerOptions {
  /** Descriptors and implementations: `createServiceImplSpec(Service, implementation)` of Connect. */
  readonly services: readonly ServiceImplSpec[];
  readonly logger: Logger;
  /** Who may call what; without it every RPC is public and need not say so. */
  readonly access?: AccessPolicy;
  readonly limits?: Partial<ServerLimits>;
  /** Proxies whose X-Forwarded-For is believed: addresses and networks. */
  readonly trustedProxies?: readonly string[];
  /** Where calls are counted; its own if left out. */
  readonly metrics?: Metrics;
  /** Certificates; without any, connections are in the clear. */
  readonly tls?: readonly TlsFiles[];
  /** Origins beside our own whose pages may call. */
  readonly corsOrigins?: readonly string[];
  /** Tells whether a request may name a host; without it any host will do. */
  readonly isHostAllowed?: HeadPolicy["isHostAllowed"];
  /** Who may read /metrics: anyone ("open", the default), auditors and admins ("token"), nobody ("off"). */
  readonly metricsAccess?: "open" | "token" | "off";
  /** Pages beside the calls, such as a description of these. */
  readonly pages?: readonly Page[];
  /** Whether the path or the method decides first between REST templates; the method if left out. */
  readonly routingOrder?: RoutingOrder;
  /** Knows failures of what the services are built on. */
  readonly explainFailure?: ExplainFailure;
}

/** Mounts pages on the application before it begins to serve. One at "/" takes the place of the list of REST calls. */
export type Page = (app: FastifyInstance, served: ServedCalls) => Promise<void>;

/** What a page can tell of. */
export interface ServedCalls {
  readonly services: readonly ServiceImplSpec[];
  /** Every file that reflection describes, imports first. */
  readonly files: readonly DescFile[];
  readonly transcoder: Transcoder;
  /** The list of REST calls, as "/" shows it. */
  readonly index: string;
}

/** A server of services. */
export interface Server {
  /** The REST side, with its routes. */
  readonly transcoder: Transcoder;
  readonly health: HealthBoard;
  /** Starts; port 0 picks a free one. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** Stops: refuses new calls, lets running ones finish, breaks off what outlasts the limit. */
  close(): Promise<void>;
  /** Stops at once. */
  destroy(): void;
}

const defaultLimits: ServerLimits = {
  maxMetadataBytes: 16_384,
  maxMessageBytes: 4 * 1024 * 1024,
  maxMessageElements: defaultStructureLimits.maxElements,
  maxUnknownFields: defaultStructureLimits.maxUnknownFields,
  maxHeaderMs: 15_000,
  maxReceiveMs: 30_000,
  maxCallMs: 30_000,
  maxDrainMs: 30_000,
  maxCalls: 1000,
  maxStreams: 10_000,
  maxCallsPerUser: 0,
  maxStreamsPerUser: 0,
  maxCallsPerSecond: 0,
  maxConnections: 20_000,
  maxBufferedBytes: 256 * 1024 * 1024,
  maxBufferedBytesPerClient: 64 * 1024 * 1024,
  maxWriteMs: 20_000,
};

/** Bytes of a message of health or reflection; a question is a name. */
const maxInfrastructureBytes = 16 * 1024;

/**
 * Connect compresses answers from this size on, for clients that offer it. Keys, signatures and ciphertexts do
 * not shrink; long lists do.
 */
const compressMinBytes = 64 * 1024;

/**
 * Makes a server.
 *
 * @throws Error if an RPC's HTTP rule can not work, or does not say who may call it; TlsError.
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const limits = { ...defaultLimits, ...options.limits };
  const shutdown = new AbortController();
  const draining = new AbortController();
  const health = createHealthBoard(options.services.map(({ service }) => service.typeName));
  const served = [...options.services, health.service];
  const services = [...served, ...createReflection(served)];
  const specs = services.flatMap(({ methods }) => Object.values(methods));
  if (options.access) requireAccess(specs.map(({ method }) => method));

  const metrics = options.metrics ?? createMetrics();
  const readClient = createReadClient(options.trustedProxies ?? []);
  const admission = createAdmission({ access: options.access, limits });
  const observer = createObserver(metrics, options.logger);
  const unread = createUnreadResponses(limits.maxWriteMs, metrics.responseDropped);
  metrics.watchBuffers(admission.bytes);
  const interceptors = createInterceptors(options, limits, observer, draining.signal);
  const transcoder = createTranscoder({
    services,
    interceptors,
    maxBytes: limits.maxMessageBytes,
    maxReceiveMs: limits.maxReceiveMs,
    structure: structureOf(limits),
    routingOrder: options.routingOrder,
    shutdownSignal: shutdown.signal,
    onError: (error) => logUnobserved(options.logger, error),
  });
  const rpcs = new Map(specs.map(({ method }) => [`/${nameOf(method)}`, method]));
  const { tls = [], corsOrigins = [] } = options;
  let serve: RequestHandler = () => {};
  const intake = createIntake({
    head: {
      maxMetadataBytes: limits.maxMetadataBytes,
      isHostAllowed: options.isHostAllowed,
      corsOrigins: new Set(corsOrigins),
    },
    browserHeaders: createBrowserHeaders({ corsOrigins, isTls: tls.length > 0 }),
    rpcs,
    transcoder,
    admission,
    observer,
    unread,
    explainFailure: options.explainFailure ?? (() => undefined),
    readClient,
    maxReceiveMs: limits.maxReceiveMs,
    maxBufferedBytesPerClient: limits.maxBufferedBytesPerClient,
    next: (req, res) => serve(req, res),
  });
  const { app, fallBack } = await createApp({
    services,
    interceptors,
    transcoder,
    health,
    metrics,
    limits,
    shutdown,
    intake,
    options,
  });
  // Fastify throws for methods that it does not know.
  serve = (req, res) => {
    if (routedMethods.has(req.method ?? "")) app.routing(req, res);
    else void fallBack(req, res);
  };
  const grpcUnary = createGrpcUnaryHandler({
    specs,
    interceptors,
    maxBytesOf: (method) => maxBytesOf(method, limits),
    maxReceiveMs: limits.maxReceiveMs,
    structure: structureOf(limits),
    shutdownSignal: shutdown.signal,
    readClient,
    intake,
    unread,
    findRefusal: (method) => {
      if (!admission.calls.isFull(method)) return undefined;
      metrics.callRefused(nameOf(method));
      return admission.calls.fullRefusal;
    },
    onError: (error) => logUnobserved(options.logger, error),
  });
  const listener = createListener({
    maxMetadataBytes: limits.maxMetadataBytes,
    maxHeaderMs: limits.maxHeaderMs,
    maxConnections: limits.maxConnections,
    tls: tls.length > 0 ? readTlsOptions(tls) : undefined,
    renderFailure: (error) => transcoder.renderFailure(toConnectError(error)),
    // A request with a fault takes the long way, where every protocol has its answer.
    onStream: (stream, headers) => intake.isHeadFaultless(headers) && grpcUnary(stream, headers),
    onRequest: intake.onRequest,
    watchConnection: (socket) => unread.watch(socket),
  });

  const stopWatching = tls.length > 0 ? watchTls(tls, listener.renewTls, options.logger) : () => {};

  return {
    transcoder,
    health,
    listen: listener.listen,
    async close() {
      health.shutDown();
      draining.abort(refuseStopping());
      stopWatching();
      const breakOff = setTimeout(() => {
        shutdown.abort(refuseStopping());
        // Handlers have one more turn to answer that they were broken off.
        setTimeout(listener.destroy, 500).unref();
      }, limits.maxDrainMs);
      await listener.drain();
      clearTimeout(breakOff);
      await app.close();
    },
    destroy: () => {
      stopWatching();
      listener.destroy();
    },
  };
}

function structureOf({ maxMessageElements, maxUnknownFields }: ServerLimits): StructureLimits {
  return { maxElements: maxMessageElements, maxUnknownFields };
}

/** "package.Service/Method". */
function nameOf({ name, parent }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** Bytes that a message of a call may have. */
function maxBytesOf(method: DescMethod, { maxMessageBytes }: ServerLimits): number {
  return isInfrastructure(method) ? Math.min(maxInfrastructureBytes, maxMessageBytes) : maxMessageBytes;
}

/** Every call of every protocol passes through these once it is admitted, outermost first. */
function createInterceptors(
  { access, explainFailure }: ServerOptions,
  limits: ServerLimits,
  observer: Observer,
  draining: AbortSignal,
): Interceptor[] {
  return [
    messageInterceptor,
    observer.interceptor,
    errorInterceptor(explainFailure),
    statusInterceptor(),
    drainInterceptor(draining),
    deadlineInterceptor(limits.maxCallMs),
    callerInterceptor,
    ...(access ? [streamAccessInterceptor()] : []),
    validationInterceptor(),
    idempotencyInterceptor(),
  ];
}

/** What the Fastify application is made of. */
interface AppParts {
  readonly services: readonly ServiceImplSpec[];
  readonly interceptors: Interceptor[];
  readonly transcoder: Transcoder;
  readonly health: HealthBoard;
  readonly metrics: Metrics;
  readonly limits: ServerLimits;
  readonly shutdown: AbortController;
  readonly intake: Intake;
  readonly options: ServerOptions;
}

/** The application, and what answers requests that it has no route for. */
interface AppWithFallback {
  readonly app: FastifyInstance;
  readonly fallBack: (req: NodeRequest, res: NodeResponse) => Promise<void>;
}

async function createApp(parts: AppParts): Promise<AppWithFallback> {
  const { services, interceptors, transcoder, health, metrics, limits, shutdown, intake, options } = parts;
  const files = collectFiles([...services.map(({ service }) => service.file), ...errorFiles]);
  const registry = createRegistry(...files);

  const pathMethods = createPathMethods();
  // The transcoder answers what Fastify has no route for or cannot read.
  const fallBack = async (req: NodeRequest, res: NodeResponse): Promise<void> => {
    const { method = "", url = "" } = req;
    const form = formOf(req, false);
    const refuseIn = (form: CallForm, error: ConnectError): Promise<void> =>
      writeResponse(res, renderFailure(form, error, transcoder.renderFailure));
    if (!isKnownMethod(method)) return refuseIn(restForm, refuseUnknownMethod(method));
    const { path } = splitTarget(url);
    const isCall = form.protocol !== "rest";
    const allow = pathMethods.allowInstead(method, path);
    if (allow !== undefined && !(isCall && method === "POST"))
      return refuseIn(restForm, refuseMethod(method, path, allow));
    if (isCall) return refuseIn(form, refuse("RPC_NOT_FOUND", `there is no RPC ${path}`, { path }));
    return serveRest(transcoder, req, res, intake.valuesOf(req));
  };
  const hijack = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    reply.hijack();
    await fallBack(request.raw, reply.raw);
  };

  const app = Fastify({
    logger: false,
    // Bodies are bounded where they are read.
    bodyLimit: Number.MAX_SAFE_INTEGER,
    frameworkErrors: (_error, request, reply) =>
      void hijack(request as FastifyRequest, reply as FastifyReply),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null, undefined));
  app.setNotFoundHandler(hijack);
  app.setErrorHandler(async (thrown: FastifyError, request, reply) => {
    reply.hijack();
    // The one thing that Fastify itself still reads of a request is its media type.
    const isRefusal = thrown.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE";
    const type = request.raw.headers["content-type"] ?? "";
    const error = isRefusal
      ? refuse("MEDIA_TYPE_UNSUPPORTED", `content-type "${type}" is no media type`, { contentType: type })
      : toConnectError(options.explainFailure?.(thrown) ?? thrown);
    if (reasonOf(error) === undefined)
      options.logger.error({ err: thrown, target: request.raw.url }, "request failed outside of any call");
    await writeResponse(reply.raw, transcoder.renderFailure(error));
  });

  const isRpc = new Set(
    services.flatMap(({ methods }) => Object.values(methods).map(({ method }) => `/${nameOf(method)}`)),
  );
  app.addHook("onRoute", ({ url, method }) => {
    if (!isRpc.has(url)) pathMethods.add(url, [method].flat());
  });

  const index = listRoutes(transcoder.routes);
  for (const mount of options.pages ?? []) {
    await mount(app, { services: options.services, files, transcoder, index });
  }
  if (!transcoder.routes.some(matchesRoot) && !app.hasRoute({ method: "GET", url: "/" })) {
    app.get("/", (_request, reply) => reply.type("text/plain").send(index));
  }
  app.get("/livez", (_request, reply) => reply.type("text/plain").send("alive\n"));
  app.get("/readyz", (_request, reply) =>
    reply
      .code(health.isServing ? 200 : 503)
      .type("text/plain")
      .send(health.isServing ? "ready\n" : "shutting down\n"),
  );
  app.get("/metrics", async (request, reply) => {
    await requireMetricsReader(options, request.headers.authorization);
    const { contentType, text } = await metrics.expose();
    return reply.type(contentType).send(text);
  });
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
          maxBytes: maxBytesOf(method, limits),
          maxReceiveMs: limits.maxReceiveMs,
          structure: structureOf(limits),
        }),
        registry,
        renderFailure: transcoder.renderFailure,
      });
      for (const { requestPath, allowedMethods } of router.handlers) {
        pathMethods.add(requestPath, allowedMethods);
      }
    },
  });
  await app.ready();
  return { app, fallBack };
}

/** @throws ROUTE_NOT_FOUND, ROLE_MISSING, or what the access policy throws */
async function requireMetricsReader(
  { access, metricsAccess = "open" }: ServerOptions,
  authorization: string | undefined,
): Promise<void> {
  if (metricsAccess === "open") return;
  if (metricsAccess === "off" || access === undefined)
    throw refuse(
      "ROUTE_NOT_FOUND",
      "there is nothing at /metrics; start the server with --metrics to open it",
      {
        path: "/metrics",
      },
    );
  const { role } = await chargeTo("tokens for /metrics", () => access.authenticate(authorization ?? null));
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

/** What somebody sees who opens the server's address in a browser: every REST call and its RPC. */
function listRoutes(routes: readonly Route[]): string {
  const lines = routes.map(
    ({ httpMethod, template, origin }) => `${httpMethod.padEnd(6)} ${template.text.padEnd(40)} ${origin}`,
  );
  return `REST calls, and the RPCs that they are:\n\n${lines.join("\n")}\n`;
}
