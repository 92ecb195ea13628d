/**
 * Accepts requests: routes each one, checks its head, admits its call and dispatches it. Reads nothing of a
 * body before that.
 */
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import { CallHeaders } from "../calls/call-headers.ts";
import { CallValues, clientKey, connectionKey } from "../calls/call-values.ts";
import { findCoreReason, toConnectError } from "../errors.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import { type Admission, type ArrivingCall, nameAddress, nameClient, Ticket } from "./admission.ts";
import { type AnswerPace, answerInTurn } from "./answer-pace.ts";
import { type BrowserHeaders, isPreflight } from "./browser.ts";
import { type CallDeps, runCall } from "./call.ts";
import type { ReadClient } from "./client-address.ts";
import type { ReadConnection } from "./connection-report.ts";
import type { CrossSiteLog } from "./cross-site-log.ts";
import type { Exchange } from "./exchange.ts";
import type { FullServer } from "./full-server.ts";
import type { ExplainFailure } from "./interceptors/errors.ts";
import type { Observer } from "./interceptors/observe.ts";
import type { ListenerOptions } from "./listener-options.ts";
import type { Metrics } from "./metrics.ts";
import { renderFailure } from "./protocols/failures.ts";
import type { CallForm } from "./protocols/form.ts";
import { RestCall, serveRest } from "./protocols/rest.ts";
import type { AdmittedStream, ServeStream } from "./protocols/streams.ts";
import { findRpcProtocol } from "./protocols/unary.ts";
import { createHeadCheck, type HeadPolicy } from "./request-head.ts";
import { type RequestIds, requestIdHeader } from "./request-ids.ts";
import { type Destination, findMethod, formOf, type RequestHead } from "./route.ts";
import { isUnary } from "./rpcs.ts";
import type { UnreadResponses } from "./unread-responses.ts";

export interface IntakeDeps extends Omit<CallDeps, "refused"> {
  readonly route: (head: RequestHead) => Destination;
  readonly full: FullServer;
  readonly head: HeadPolicy;
  readonly browserHeaders: BrowserHeaders;
  readonly admission: Admission;
  readonly observer: Observer;
  readonly metrics: Metrics;
  readonly crossSiteLog: CrossSiteLog;
  readonly requestIds: RequestIds;
  readonly unread: UnreadResponses;
  readonly pace: AnswerPace;
  readonly explainFailure: ExplainFailure;
  readonly readClient: ReadClient;
  readonly readConnection: ReadConnection;
  readonly transcoder: Transcoder;
  readonly serveStream: ServeStream;
  readonly onFault: ListenerOptions["onFault"];
}

/**
 * Milliseconds of event-loop time on a slow core for a request that is not a call: a page, or an invalid
 * head.
 */
const sideMs = 0.3;

/** Creates the function that handles exchanges. */
export function createIntake(deps: IntakeDeps): ListenerOptions["onExchange"] {
  const { admission, observer, requestIds, unread, transcoder } = deps;
  const findHeadFault = createHeadCheck(deps.head);

  /** Refuses a call, which releases its places before its refusal waits for its turn. */
  const refuseCall = async (
    { headers }: Exchange,
    call: ArrivingCall,
    thrown: unknown,
    startedMs: number,
  ): Promise<never> => {
    const error = deps.explainFailure(thrown) ?? toConnectError(thrown);
    const header = new CallHeaders(headers);
    observer.refused({ method: call.method, header, error, durationMs: performance.now() - startedMs });
    call.ticket.close();
    await deps.pace.waitIfBusy(error, () => nameClient(call.values));
    throw error;
  };
  /** Admits a call. Logs and counts a refusal; the promise then rejects with it. */
  const admit = (exchange: Exchange, call: ArrivingCall): Promise<void> | undefined => {
    const startedMs = performance.now();
    try {
      return admission.admit(call)?.catch((thrown: unknown) => refuseCall(exchange, call, thrown, startedMs));
    } catch (thrown) {
      return refuseCall(exchange, call, thrown, startedMs);
    }
  };
  const refused: CallDeps["refused"] = ({ method }, header, error, contextValues) =>
    observer.refused({ method, header, error, durationMs: 0, contextValues });
  const callDeps: CallDeps = { ...deps, refused };

  const addBrowserHeaders = (exchange: Exchange): void =>
    exchange.setOwnHeaders(deps.browserHeaders.headersOf(exchange.headers));
  const fail = (exchange: Exchange, form: CallForm, error: ConnectError): void => {
    addBrowserHeaders(exchange);
    requestIds.mark(error, exchange.headers[requestIdHeader]);
    const answer = renderFailure(form, error, () => {
      const rendered = transcoder.renderFailure(error, exchange);
      rendered.headers.set("content-type", form.protocol === "rest" ? form.contentType : "application/json");
      return rendered;
    });
    void exchange.send(answer);
  };
  const breakOff = (exchange: Exchange, values: ContextValues, fault: unknown): void => {
    deps.onFault(fault, exchange.target, requestIds.identify(values, exchange.headers[requestIdHeader]));
    exchange.drop();
  };

  const serveStream = async (call: AdmittedStream): Promise<void> => {
    const { exchange, form, rpc } = call;
    try {
      await deps.serveStream(call);
    } catch (thrown) {
      const error = toConnectError(thrown);
      const header = new CallHeaders(exchange.headers);
      if (!error.metadata.has(requestIdHeader))
        observer.refused({ method: rpc.method, header, error, durationMs: 0 });
      fail(exchange, form, error);
    }
  };

  const serve = (
    exchange: Exchange,
    destination: Exclude<Destination, { readonly kind: "page" | "nowhere" }>,
    values: ContextValues,
  ): Promise<void> => {
    const { form } = destination;
    if (destination.kind === "rest") {
      const { route, rpc } = destination;
      if (rpc === undefined || route === undefined || !isUnary(rpc))
        return serveRest(deps, exchange, route, values);
      return runCall(callDeps, { exchange, form, protocol: new RestCall(deps, route, values), rpc, values });
    }
    const { rpc, query } = destination;
    if (!isUnary(rpc)) return serveStream({ exchange, form, rpc, values });
    return runCall(callDeps, { exchange, form, protocol: findRpcProtocol(form), rpc, values, query });
  };

  /** Answers a request that is not a call, when its turn comes. */
  const answerAside = (exchange: Exchange, answer: () => void, discards: boolean): void => {
    const client = (): string => nameAddress(deps.readClient(exchange));
    const send = (): void => {
      try {
        answer();
      } catch (fault) {
        deps.onFault(fault, exchange.target);
        exchange.drop();
      }
    };
    answerInTurn(deps.pace, exchange, { costMs: sideMs, client, send }, discards);
  };

  return (exchange, toPage) => {
    const destination = deps.route(exchange);
    const method = findMethod(destination);
    if (method !== undefined && deps.full.refuse(exchange, destination, method)) return;
    const { form, kind } = destination;
    // Browsers do not speak gRPC, and its small calls are the fastest ones.
    if (form.protocol !== "grpc" || method?.methodKind !== "unary") addBrowserHeaders(exchange);
    const ticket = new Ticket();
    const watched = unread.watch(exchange);
    exchange.onClose(() => {
      watched.leave();
      ticket.close();
    });
    const fault = findHeadFault(exchange, method !== undefined);
    if (fault !== undefined) {
      countHeadFault(deps, exchange, requestIds.mark(fault, exchange.headers[requestIdHeader]));
      answerAside(exchange, () => fail(exchange, formOf(destination), fault), true);
      return;
    }
    if (isPreflight(exchange) && deps.browserHeaders.answerPreflight(exchange)) return;
    // Pages are the same bytes for all clients, so they do not count against a client's memory.
    if (kind === "page") {
      answerAside(exchange, toPage, false);
      return;
    }
    const client = deps.readClient(exchange);
    const values = new CallValues()
      .set(clientKey, client)
      .set(connectionKey, () => deps.readConnection(exchange));
    exchange.client = () => nameClient(values);
    if (kind === "nowhere") {
      answerAside(exchange, () => fail(exchange, form, destination.error), true);
      return;
    }
    const begin = (): void => {
      serve(exchange, destination, values).catch((fault: unknown) => breakOff(exchange, values, fault));
    };
    if (method === undefined) {
      answerAside(exchange, begin, false);
      return;
    }
    const { authorization = null } = exchange.headers;
    const admitting = admit(exchange, { method, authorization, values, ticket });
    if (admitting === undefined) {
      begin();
      return;
    }
    admitting
      .then(
        // Never start a call after its caller has disconnected: nothing would end it.
        () => (ticket.isClosed ? undefined : begin()),
        (error: ConnectError) => fail(exchange, form, error),
      )
      .catch((fault: unknown) => breakOff(exchange, values, fault));
  };
}

function countHeadFault(
  { metrics, crossSiteLog }: IntakeDeps,
  { headers }: Exchange,
  fault: ConnectError,
): void {
  metrics.requestRefused(fault);
  const requestId = fault.metadata.get(requestIdHeader) ?? "";
  if (findCoreReason(fault) === "CROSS_SITE_REFUSED")
    crossSiteLog.refused({ origin: headers.origin, requestId });
}
