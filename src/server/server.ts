/**
 * Serves services on one port, over gRPC, gRPC-Web, Connect and REST, with reflection, health and metrics.
 *
 * It takes descriptors and implementations and knows none of them.
 */
import type { AddressInfo } from "node:net";
import { createRegistry, type DescMethod } from "@bufbuild/protobuf";
import type { ConnectError, Interceptor, ServiceImplSpec } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { Logger } from "pino";
import { refuse, refuseMetadata, toConnectError } from "../errors.ts";
import { collectFiles } from "../transcoding/descriptors.ts";
import { splitTarget } from "../transcoding/http.ts";
import type { Route } from "../transcoding/routes.ts";
import { createTranscoder, type Transcoder } from "../transcoding/transcoder.ts";
import { createBrowserHeaders } from "./browser.ts";
import { contextOf, createReadClient, type ReadClient } from "./client-address.ts";
import { addServices, reachInterceptor, requestGate, tightenHandlers } from "./connect.ts";
import { type CallForm, formOf, renderFailure, restForm } from "./failures.ts";
import { createGrpcUnaryHandler } from "./grpc-unary.ts";
import { createHealthBoard, type HealthBoard } from "./health.ts";
import {
  type AccessPolicy,
  accessInterceptor,
  isInfrastructure,
  requireAccess,
} from "./interceptors/access.ts";
import { deadlineInterceptor } from "./interceptors/deadline.ts";
import { type ExplainFailure, errorInterceptor } from "./interceptors/errors.ts";
import { idempotencyInterceptor } from "./interceptors/idempotency.ts";
import { type Concurrency, createConcurrency, rateInterceptor } from "./interceptors/limits.ts";
import { logUnobserved, observeInterceptor } from "./interceptors/observe.ts";
import { statusInterceptor } from "./interceptors/status.ts";
import { validationInterceptor } from "./interceptors/validation.ts";
import { lingerAfterAnswer } from "./linger.ts";
import { createListener } from "./listener.ts";
import { countMetadataBytes } from "./metadata.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import type { NodeRequest, NodeResponse } from "./node-http.ts";
import {
  createPathMethods,
  isKnownMethod,
  refuseMethod,
  refuseUnknownMethod,
  routedMethods,
} from "./path-methods.ts";
import { createReflection } from "./reflection.ts";
import { serveRest, writeResponse } from "./rest.ts";
import { readTlsOptions, type TlsFiles, watchTls } from "./tls.ts";

/** What bounds requests and calls. */
export interface ServerLimits {
  /** Bytes of all names and values of a request's metadata; 16,384 by default. */
  readonly maxMetadataBytes: number;
  /** Bytes of a body, or of one message of a stream; 4 MiB by default. */
  readonly maxMessageBytes: number;
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
  /** Calls a second of each client; 0, the default, for no limit. */
  readonly maxCallsPerSecond: number;
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
  /** Pages beside the calls, such as a description of these. */
  readonly pages?: readonly Page[];
  /** Knows failures of what the services are built on. */
  readonly explainFailure?: ExplainFailure;
}

/** Mounts pages on the application before it begins to serve. One at "/" takes the place of the list of REST calls. */
export type Page = (app: FastifyInstance, served: ServedCalls) => Promise<void>;

/** What a page can tell of. */
export interface ServedCalls {
  readonly services: readonly ServiceImplSpec[];
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
  maxHeaderMs: 15_000,
  maxReceiveMs: 30_000,
  maxCallMs: 30_000,
  maxDrainMs: 30_000,
  maxCalls: 1000,
  maxStreams: 10_000,
  maxCallsPerSecond: 0,
};

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
  const health = createHealthBoard(options.services.map(({ service }) => service.typeName));
  const served = [...options.services, health.service];
  const services = [...served, ...createReflection(served)];
  const specs = services.flatMap(({ methods }) => Object.values(methods));
  if (options.access) requireAccess(specs.map(({ method }) => method));

  const metrics = options.metrics ?? createMetrics();
  const readClient = createReadClient(options.trustedProxies ?? []);
  const concurrency = createConcurrency(limits);
  const interceptors = createInterceptors(options, metrics, limits, concurrency);
  const transcoder = createTranscoder({
    services,
    interceptors,
    maxBytes: limits.maxMessageBytes,
    maxReceiveMs: limits.maxReceiveMs,
    shutdownSignal: shutdown.signal,
    onError: (error) => logUnobserved(options.logger, error),
  });
  const { app, fallBack } = await createApp({
    services,
    interceptors,
    transcoder,
    health,
    metrics,
    limits,
    shutdown,
    readClient,
    options,
  });
  const grpcUnary = createGrpcUnaryHandler({
    specs,
    interceptors,
    maxBytes: limits.maxMessageBytes,
    maxReceiveMs: limits.maxReceiveMs,
    shutdownSignal: shutdown.signal,
    readClient,
    findRefusal: (method) => {
      if (!concurrency.isFull() || isInfrastructure(method)) return undefined;
      metrics.callRefused(nameOf(method));
      return concurrency.refusal;
    },
    onError: (error) => logUnobserved(options.logger, error),
  });
  const rpcPaths = new Set(specs.map(({ method }) => `/${nameOf(method)}`));
  const { tls = [], corsOrigins = [] } = options;
  const setBrowserHeaders = createBrowserHeaders({ corsOrigins, isTls: tls.length > 0 });
  const listener = createListener({
    maxMetadataBytes: limits.maxMetadataBytes,
    maxHeaderMs: limits.maxHeaderMs,
    tls: tls.length > 0 ? readTlsOptions(tls) : undefined,
    renderFailure: (error) => transcoder.renderFailure(toConnectError(error)),
    onStream: (stream, headers) =>
      countMetadataBytes(headers) <= limits.maxMetadataBytes && grpcUnary(stream, headers),
    onRequest: (req, res) => {
      lingerAfterAnswer(req, res, limits.maxReceiveMs);
      if (setBrowserHeaders(req, res)) return;
      const refusal = checkHead(req, limits.maxMetadataBytes);
      if (refusal === undefined) {
        if (routedMethods.has(req.method ?? "")) app.routing(req, res);
        else void fallBack(req, res);
        return;
      }
      const form = formOf(req, rpcPaths.has(splitTarget(req.url ?? "").path));
      void writeResponse(res, renderFailure(form, refusal, transcoder.renderFailure));
    },
  });

  const stopWatching = tls.length > 0 ? watchTls(tls, listener.renewTls, options.logger) : () => {};

  return {
    transcoder,
    health,
    listen: listener.listen,
    async close() {
      health.shutDown();
      stopWatching();
      const breakOff = setTimeout(() => {
        shutdown.abort(refuse("SHUTTING_DOWN", "the server stops; try again, it may be back"));
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

/** "package.Service/Method". */
function nameOf({ name, parent }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** Tells what is wrong with a request before anybody looks at what it asks for. */
function checkHead(req: NodeRequest, maxMetadataBytes: number): ConnectError | undefined {
  const bytes = countRawBytes(req);
  if (bytes > maxMetadataBytes) return refuseMetadata(bytes, maxMetadataBytes);
  // RFC 9112, section 3.2, and RFC 9113, section 8.3.1: whom a request is for is a must.
  const authority = req.headers[":authority"]?.toString() ?? req.headers.host;
  if (authority !== undefined && URL.canParse(`http://${authority}`)) return undefined;
  return refuse("HTTP_INVALID", "the request does not say for which host it is, or that is no name of one");
}

/** HTTP/1.1 has the target outside of its headers; HTTP/2 has it among them. */
function countRawBytes(req: NodeRequest): number {
  let bytes = req.httpVersionMajor === 1 ? (req.url?.length ?? 0) : 0;
  for (const text of req.rawHeaders) bytes += text.length;
  return bytes;
}

/** Every call of every protocol passes through these, outermost first. */
function createInterceptors(
  options: ServerOptions,
  metrics: Metrics,
  limits: ServerLimits,
  concurrency: Concurrency,
): Interceptor[] {
  return [
    reachInterceptor,
    observeInterceptor(metrics, options.logger),
    errorInterceptor(options.explainFailure),
    statusInterceptor(),
    concurrency.interceptor,
    deadlineInterceptor(limits.maxCallMs),
    rateInterceptor(limits.maxCallsPerSecond, "address"),
    ...(options.access ? [accessInterceptor(options.access)] : []),
    rateInterceptor(limits.maxCallsPerSecond, "subject"),
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
  readonly readClient: ReadClient;
  readonly options: ServerOptions;
}

/** The application, and what answers requests that it has no route for. */
interface AppWithFallback {
  readonly app: FastifyInstance;
  readonly fallBack: (req: NodeRequest, res: NodeResponse) => Promise<void>;
}

async function createApp(parts: AppParts): Promise<AppWithFallback> {
  const { services, interceptors, transcoder, health, metrics, limits, shutdown, readClient, options } =
    parts;
  const registry = createRegistry(...collectFiles(services.map(({ service }) => service.file)));

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
    return serveRest(transcoder, req, res, contextOf(readClient, req));
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
      : toConnectError(thrown);
    if (!isRefusal)
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
    await mount(app, { services: options.services, transcoder, index });
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
  app.get("/metrics", async (_request, reply) => {
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
    contextValues: ({ raw }) => contextOf(readClient, raw),
    routes: (router) => {
      addServices(router, services);
      tightenHandlers(router, {
        limits: { maxBytes: limits.maxMessageBytes, maxReceiveMs: limits.maxReceiveMs },
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
