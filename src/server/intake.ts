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
import { announcesBody, type Exchange } from "./exchange.ts";
import type { FullServer } from "./full-server.ts";
import type { ExplainFailure } from "./interceptors/errors.ts";
import type { Observer } from "./interceptors/observe.ts";
import type { ListenerOptions } from "./listener-options.ts";
import { countRawBytes } from "./metadata.ts";
import type { Metrics } from "./metrics.ts";
import { renderFailure } from "./protocols/failures.ts";
import type { CallForm } from "./protocols/form.ts";
import { RestCall, serveRest } from "./protocols/rest.ts";
import type { ServeStream } from "./protocols/streams.ts";
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

/** A call found for a request. */
interface FoundCall extends ArrivingCall {
  readonly header: Headers;
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

  const explain = (call: FoundCall, thrown: unknown, startedMs: number): ConnectError => {
    const error = deps.explainFailure(thrown) ?? toConnectError(thrown);
    const { method, header } = call;
    observer.refused({ method, header, error, durationMs: performance.now() - startedMs });
    return error;
  };
  /** Refuses a call, which releases its places before its refusal waits for its turn. */
  const refuseCall = async (call: FoundCall, thrown: unknown, startedMs: number): Promise<never> => {
    const error = explain(call, thrown, startedMs);
    call.ticket.close();
    await deps.pace.waitIfBusy(error, () => nameClient(call.values));
    throw error;
  };
  /** Admits a call. Logs and counts a refusal; the promise then rejects with it. */
  const admit = (call: FoundCall): Promise<void> | undefined => {
    const startedMs = performance.now();
    try {
      return admission.admit(call)?.catch((thrown: unknown) => refuseCall(call, thrown, startedMs));
    } catch (thrown) {
      return refuseCall(call, thrown, startedMs);
    }
  };
  const refused: CallDeps["refused"] = ({ method }, header, error) =>
    observer.refused({ method, header, error, durationMs: 0 });
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

  const serve = async (
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
    if (isUnary(rpc))
      return runCall(callDeps, { exchange, form, protocol: findRpcProtocol(form), rpc, values, query });
    try {
      await deps.serveStream({ exchange, form, rpc, values });
    } catch (thrown) {
      const error = toConnectError(thrown);
      const header = new CallHeaders(exchange.headers);
      if (!error.metadata.has(requestIdHeader))
        observer.refused({ method: rpc.method, header, error, durationMs: 0 });
      fail(exchange, form, error);
    }
  };

  /** Answers a request that is not a call, when its turn comes. */
  const answerAside = (exchange: Exchange, answer: () => void, discards: boolean): void => {
    const client = (): string =>
      nameAddress(deps.readClient(exchange.peer, exchange.headers["x-forwarded-for"]));
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
    const fault = findHeadFault(readHead(exchange, method !== undefined));
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
    const client = deps.readClient(exchange.peer, exchange.headers["x-forwarded-for"]);
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
    const header = new CallHeaders(exchange.headers);
    const admitting = admit({ method, authorization, values, ticket, header });
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
  const reason = findCoreReason(fault);
  if (reason === undefined) return;
  metrics.requestRefused(reason);
  const requestId = fault.metadata.get(requestIdHeader) ?? "";
  if (reason === "CROSS_SITE_REFUSED") crossSiteLog.refused({ origin: headers.origin, requestId });
}

function readHead(exchange: Exchange, isCall: boolean) {
  const { method, target, headers, rawHeaders } = exchange;
  const isHttp1 = exchange.httpVersion === "1.1";
  const targetHost = isHttp1 ? readTargetHost(target) : undefined;
  // HTTP/1.1 sends the target outside the headers, HTTP/2 in a pseudo-header.
  const metadataBytes = countRawBytes(rawHeaders) + (isHttp1 ? target.length : 0);
  // In HTTP/2, only the first byte of a body shows that the request has one.
  const hasBody = isHttp1 ? exchange.hasBody : announcesBody(headers);
  return { method, headers, metadataBytes, targetHost, rawHeaders, announcesBody: hasBody, isCall };
}

/** Returns the host of an absolute target; undefined for a path or "*", "" for anything else. */
function readTargetHost(target: string): string | undefined {
  if (target.startsWith("/") || target === "*") return undefined;
  return /^https?:\/\/([^/?#]*)/i.exec(target)?.[1] ?? "";
}
