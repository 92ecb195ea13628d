/**
 * Serves services on one port over gRPC, gRPC-Web, Connect and REST, with reflection, health and metrics.
 *
 * It takes descriptors and implementations and depends on none in particular.
 */
import type { Interceptor, ServiceImplSpec } from "@connectrpc/connect";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { Logger } from "pino";
import { CallValues, requestIdKey } from "../calls/call-values.ts";
import { RunningCalls } from "../calls/unary-call.ts";
import { serverStopping, toConnectError } from "../errors.ts";
import { createTranscoder, type Transcoder } from "../transcoding/transcoder.ts";
import { createAdmission } from "./admission.ts";
import { createAnswerPace } from "./answer-pace.ts";
import { createBrowserHeaders } from "./browser.ts";
import { createAddressCheck, createReadClient, plain } from "./client-address.ts";
import { Clients } from "./clients.ts";
import { createReadConnection } from "./connection-report.ts";
import { createConnectionShares } from "./connection-shares.ts";
import { createCrossSiteLog } from "./cross-site-log.ts";
import { createFullServer } from "./full-server.ts";
import { createHealthBoard, type HealthBoard } from "./health.ts";
import { createIntake } from "./intake.ts";
import { requireAccess } from "./interceptors/access.ts";
import { callerInterceptor } from "./interceptors/caller.ts";
import { createCallerWatch, type OnUnchecked } from "./interceptors/caller-watch.ts";
import { createErrorMap, requestErrorInterceptor, streamErrorInterceptor } from "./interceptors/errors.ts";
import { idempotencyInterceptor } from "./interceptors/idempotency.ts";
import { listTurnInterceptor } from "./interceptors/list-turns.ts";
import { createObserver, logUnobserved } from "./interceptors/observe.ts";
import { streamStatusInterceptor } from "./interceptors/status.ts";
import { streamEndInterceptor } from "./interceptors/stream-end.ts";
import { forStreams } from "./interceptors/streams.ts";
import { unaryInterceptor } from "./interceptors/unary.ts";
import { validationInterceptor } from "./interceptors/validation.ts";
import { findMaxBytes, toBodyLimits, toStructureLimits } from "./limits.ts";
import { createListener, type Listener } from "./listener.ts";
import type { ListenerOptions } from "./listener-options.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import type { ServerOptions } from "./options.ts";
import { createPages, type Pages } from "./pages.ts";
import { createStreams } from "./protocols/streams.ts";
import { createTokenBuckets } from "./rate-limiter.ts";
import { createReflection } from "./reflection.ts";
import { createRequestIds, requestIdHeader } from "./request-ids.ts";
import { createRouting } from "./route.ts";
import { createRpcs } from "./rpcs.ts";
import { readTlsOptions, watchTls } from "./tls.ts";
import { createUnreadResponses } from "./unread-responses.ts";

/** Local programs, and a local proxy, all come from these addresses. */
const ownAddresses = ["127.0.0.1", "::1"];

/**
 * Connect compresses stream messages from this size on, for clients that accept it. Keys, signatures and
 * ciphertexts do not shrink. Long lists do.
 */
const compressMinBytes = 64 * 1024;

export interface Server {
  /** The REST side, with its routes. */
  readonly transcoder: Transcoder;
  readonly health: HealthBoard;
  readonly listen: Listener["listen"];
  /**
   * Stops: refuses new calls, lets running calls finish, and aborts those that take longer.
   *
   * @param maxDrainMs milliseconds that running calls have; defaults to the limits
   */
  close(maxDrainMs?: number): Promise<void>;
  /** Stops at once. */
  destroy(): void;
}

/**
 * Creates a server.
 *
 * @throws TlsError, or Error if an RPC's HTTP rule cannot work or an RPC does not declare who may call it
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const health = createHealthBoard(options.services.map(({ service }) => service.typeName));
  const services = listServices(options, health);
  const common = createCommon(options);
  const protocols = createProtocols(common, services);
  const { transcoder } = protocols;
  const { metrics, requestIds } = common;
  const pages = await createPages({ services, transcoder, health, metrics, requestIds, options });
  const takeExchange = connectIntake(common, protocols, pages);
  const listener = openListener(common, protocols, pages, takeExchange);
  return { transcoder, health, listen: listener.listen, ...createEnd(common, { listener, pages, health }) };
}

/** Adds health and reflection to the configured services. */
function listServices({ services, access, profiles }: ServerOptions, health: HealthBoard): ServiceImplSpec[] {
  const served = [...services, health.service];
  const all = [...served, ...createReflection(served)];
  const methods = all.flatMap(({ service }) => service.methods);
  if (access) requireAccess(methods, profiles);
  return all;
}

/** What all parts of a server share: counters, logs, and what clients hold. */
function createCommon(options: ServerOptions) {
  const { limits, profiles, access, logger, tracing } = options;
  const metrics = options.metrics ?? createMetrics();
  const readClient = createReadClient(options.trustedProxies ?? []);
  const requestIds = createRequestIds();
  const observer = createObserver({ metrics, logger, requestIds, tracing });
  const clients = new Clients();
  const unread = createUnreadResponses(limits.maxWriteMs, metrics.responseDropped, clients);
  const admission = createAdmission({ access, profiles, limits, clients });
  metrics.watchBuffers(admission.bytes);
  const onFault: ListenerOptions["onFault"] = (err, target, requestId) =>
    logger.error({ requestId, err, target }, "request failed outside of any call");
  return {
    ...{
      options,
      limits,
      profiles,
      logger,
      metrics,
      readClient,
      requestIds,
      observer,
      unread,
      admission,
      onFault,
    },
    pace: createAnswerPace(),
    shutdown: new AbortController(),
    draining: new AbortController(),
  };
}
type Common = ReturnType<typeof createCommon>;

/** The ways to call services: REST, unary RPCs and streaming RPCs. */
function createProtocols(common: Common, services: readonly ServiceImplSpec[]) {
  const { options, limits, profiles, logger, requestIds, observer, shutdown } = common;
  const interceptors = createInterceptors(common);
  const transcoder = createTranscoder({
    services,
    profiles,
    interceptors,
    ...toBodyLimits(limits),
    pathConvention: options.pathConvention,
    shutdownSignal: shutdown.signal,
    onError: (error, { contextValues: values = new CallValues(), headers, signal }, method) => {
      // The interceptors see a call only once its message has been read.
      if (values.get(requestIdKey) === "" && method !== undefined && !signal.aborted)
        observer.refused({ method, header: headers, error, durationMs: 0, contextValues: values });
      logUnobserved(logger, error, () => requestIds.identify(values, headers.get(requestIdHeader)));
    },
  });
  const rpcs = createRpcs({
    specs: services.flatMap(({ methods }) => Object.values(methods)),
    interceptors,
    registry: transcoder.registry,
    limitsOf: (method) => ({
      maxBytes: findMaxBytes(method, limits, profiles),
      structure: toStructureLimits(limits),
    }),
  });
  const serveStream = createStreams(services, {
    interceptors,
    acceptCompression: [compressionGzip, compressionBrotli],
    compressMinBytes,
    readMaxBytes: limits.maxMessageBytes,
    jsonOptions: { ignoreUnknownFields: false, alwaysEmitImplicit: true, registry: transcoder.registry },
    shutdownSignal: shutdown.signal,
  });
  return { transcoder, rpcs, serveStream };
}
type Protocols = ReturnType<typeof createProtocols>;

/** Connects the code that decides about a request to the code that runs it. */
function connectIntake(common: Common, { transcoder, rpcs, serveStream }: Protocols, { paths }: Pages) {
  const { options, limits, profiles, logger, metrics, admission, shutdown } = common;
  const { tls = [], corsOrigins = [], isHostAllowed, explainFailure } = options;
  return createIntake({
    ...common,
    ...limits,
    ...{ transcoder, serveStream },
    route: createRouting({ rpcs, pages: paths, transcoder, profiles: profiles ?? {} }),
    full: createFullServer({
      ...common,
      ...{ transcoder, calls: admission.calls },
      onRefusal: (method) => metrics.callRefused(method, "SERVER_BUSY"),
    }),
    head: { maxMetadataBytes: limits.maxMetadataBytes, isHostAllowed, corsOrigins: new Set(corsOrigins) },
    browserHeaders: createBrowserHeaders({ corsOrigins, isTls: tls.length > 0 }),
    readConnection: createReadConnection(options.trustedProxies ?? []),
    crossSiteLog: createCrossSiteLog(logger),
    explainFailure: explainFailure ?? (() => undefined),
    onError: (error, values) => logUnobserved(logger, error, () => values.get(requestIdKey)),
    running: new RunningCalls(shutdown.signal),
  });
}

/** Creates the port, which accepts connections within each client's share. */
function openListener(
  { options, limits, metrics, logger, requestIds, unread, onFault }: Common,
  { transcoder }: Protocols,
  pages: Pages,
  onExchange: ListenerOptions["onExchange"],
): Listener {
  const { trustedProxies = [], tls = [] } = options;
  const shares = createConnectionShares({
    ...limits,
    rate: createTokenBuckets(limits.maxConnectionsPerSecond),
    isShared: createAddressCheck([...ownAddresses, ...trustedProxies]),
    onRefused: metrics.connectionRefused,
    logger,
  });
  return createListener({
    ...limits,
    admitConnection: (address = "unknown") => shares.admit(plain(address)),
    countAbandoned: (address = "unknown", connection) => shares.abandon(plain(address), connection),
    tls: tls.length > 0 ? readTlsOptions(tls) : undefined,
    refuseBytes(error) {
      const refusal = requestIds.mark(toConnectError(error), undefined);
      metrics.requestRefused(refusal);
      return transcoder.renderFailure(refusal);
    },
    onExchange,
    onPage: pages.serve,
    onFault,
    unread,
  });
}

/** What has to be stopped with the server. */
interface Ending {
  readonly listener: Listener;
  readonly pages: Pages;
  readonly health: HealthBoard;
}

/** Creates the two ways to stop a server, and watches its certificates until then. */
function createEnd(
  { options: { tls = [] }, limits, logger, shutdown, draining }: Common,
  { listener, pages, health }: Ending,
): Pick<Server, "close" | "destroy"> {
  const stopWatching = tls.length > 0 ? watchTls(tls, listener.renewTls, logger) : () => {};
  return {
    async close(maxDrainMs = limits.maxDrainMs) {
      const reason = serverStopping();
      health.shutDown();
      draining.abort(reason);
      stopWatching();
      const breakOff = setTimeout(() => {
        shutdown.abort(reason);
        // Handlers need time to report that they were aborted.
        setTimeout(listener.destroy, 500).unref();
      }, maxDrainMs);
      await listener.drain();
      clearTimeout(breakOff);
      await pages.close();
    },
    destroy: () => {
      stopWatching();
      listener.destroy();
    },
  };
}

/** Every admitted call of every protocol passes through these, outermost first. */
function createInterceptors({ options, logger, metrics, observer, pace, draining }: Common): Interceptor[] {
  const { access, explainFailure, hintValue } = options;
  const mapError = createErrorMap(explainFailure, hintValue);
  const watchCaller = access && createCallerWatch(observeChecks(logger, metrics));
  return [
    unaryInterceptor(observer, mapError, pace),
    forStreams([
      observer.streamInterceptor,
      streamErrorInterceptor(mapError),
      streamStatusInterceptor,
      streamEndInterceptor(draining.signal, watchCaller),
    ]),
    callerInterceptor,
    validationInterceptor(),
    requestErrorInterceptor(mapError),
    idempotencyInterceptor(),
    listTurnInterceptor(),
  ];
}

/** Counts failed checks of stream callers, and logs the first of a series. */
function observeChecks(logger: Logger, metrics: Metrics): OnUnchecked {
  const work = "check_stream_callers";
  metrics.backgroundStarted(work);
  return (error, isRepeated) => {
    metrics.backgroundFailed(work);
    if (!isRepeated)
      logger.error({ work, err: error }, "cannot check whether stream callers are still authorized");
  };
}
