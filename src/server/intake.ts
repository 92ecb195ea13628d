/**
 * Takes requests in: checks the head, finds the call, admits it, and only then passes the request to a body reader.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import { toConnectError } from "../errors.ts";
import { CallHeaders } from "../protocol/call-headers.ts";
import { CallValues, clientKey } from "../protocol/call-values.ts";
import { type RestResponse, splitTarget } from "../transcoding/http.ts";
import type { FoundRoute, Transcoder } from "../transcoding/transcoder.ts";
import { type Admission, type ArrivingCall, nameClient, Ticket } from "./admission.ts";
import { type BrowserHeaders, isPreflight } from "./browser.ts";
import type { ReadClient } from "./client-address.ts";
import { refuseCutBody } from "./cut-body.ts";
import { drainAfterAnswer } from "./drain-request.ts";
import { readCallForm, renderFailure } from "./failures.ts";
import type { ExplainFailure } from "./interceptors/errors.ts";
import type { Observer } from "./interceptors/observe.ts";
import type { ListenerOptions } from "./listener-options.ts";
import { countRawBytes } from "./metadata.ts";
import type { NodeRequest, NodeResponse } from "./node-http.ts";
import type { RefusalPace } from "./refusal-pace.ts";
import { createHeadCheck, type HeadPolicy } from "./request-head.ts";
import { type RequestIds, requestIdHeader } from "./request-ids.ts";
import { announcesBody, writeResponse } from "./rest.ts";
import type { UnreadResponses, Writing } from "./unread-responses.ts";

/** The parts of the intake of one server. */
export interface IntakeOptions {
  readonly head: HeadPolicy;
  readonly browserHeaders: BrowserHeaders;
  /** By path: "/package.Service/Method". */
  readonly rpcs: ReadonlyMap<string, DescMethod>;
  readonly transcoder: Transcoder;
  readonly admission: Admission;
  readonly observer: Observer;
  readonly requestIds: RequestIds;
  readonly unread: UnreadResponses;
  readonly pace: RefusalPace;
  readonly explainFailure: ExplainFailure;
  readonly readClient: ReadClient;
  readonly maxReceiveMs: number;
  /** Receives a request that is refused for its head. The error has the ID of the request. */
  readonly onHeadFault: (fault: ConnectError, headers: IncomingHttpHeaders) => void;
  readonly onFault: ListenerOptions["onFault"];
  /** Receives admitted requests. */
  readonly next: (req: NodeRequest, res: NodeResponse) => void;
}

/** A call that was found for a request. */
export interface FoundCall extends ArrivingCall {
  readonly header: Headers;
}

/** The intake of one server. */
export interface Intake {
  readonly onRequest: (req: NodeRequest, res: NodeResponse) => void;
  /** Admits a call, and logs and counts a refusal, with which the promise rejects. */
  admit(call: FoundCall): Promise<void> | undefined;
  /** Tells whether the head of a call on an HTTP/2 stream is valid. */
  isHeadFaultless(headers: IncomingHttpHeaders, rawHeaders: readonly string[]): boolean;
  /** Ends a request whose answer cannot be written, which is a bug. */
  breakOff(req: NodeRequest, res: NodeResponse, fault: unknown): void;
  /** The context values of an admitted request. */
  valuesOf(req: NodeRequest): ContextValues;
  /** The REST route of an admitted request; undefined for a page and for another protocol. */
  routeOf(req: NodeRequest): FoundRoute | undefined;
}

/** A request whose head is valid. */
interface Arrived {
  readonly values: ContextValues;
  /** The RPC that it calls; undefined for a page. */
  readonly method: DescMethod | undefined;
  readonly route: FoundRoute | undefined;
}

const always = (): boolean => true;

/** Creates the intake of one server. */
export function createIntake(options: IntakeOptions): Intake {
  const { rpcs, transcoder, admission, observer, requestIds, unread, readClient } = options;
  const findHeadFault = createHeadCheck(options.head);
  const arrived = new WeakMap<NodeRequest, Arrived>();

  const explain = ({ method, header }: FoundCall, thrown: unknown, startedMs: number): ConnectError => {
    const error = options.explainFailure(thrown) ?? toConnectError(thrown);
    observer.refused({ method, header, error, durationMs: performance.now() - startedMs });
    return error;
  };
  /** Refuses a call, which gives back its places before its refusal waits for its turn. */
  const refuseCall = async (call: FoundCall, thrown: unknown, startedMs: number): Promise<never> => {
    const error = explain(call, thrown, startedMs);
    call.ticket.close();
    await options.pace.waitIfBusy(error);
    throw error;
  };
  const admit = (call: FoundCall): Promise<void> | undefined => {
    const startedMs = performance.now();
    try {
      return admission.admit(call)?.catch((thrown: unknown) => refuseCall(call, thrown, startedMs));
    } catch (thrown) {
      return refuseCall(call, thrown, startedMs);
    }
  };

  const findCall = ({ method = "", url = "" }: NodeRequest): Pick<Arrived, "method" | "route"> => {
    const rpc = rpcs.get(splitTarget(url).path);
    if (rpc !== undefined) return { method: rpc, route: undefined };
    const route = transcoder.find(method, url);
    return { method: route?.match.route.spec.method, route };
  };

  const fail = (req: NodeRequest, res: NodeResponse, error: ConnectError): void => {
    const form = readCallForm(req, rpcs.has(splitTarget(req.url ?? "").path));
    const { method = "", url = "" } = req;
    requestIds.mark(error, req.headers[requestIdHeader]);
    const renderRest = (): RestResponse => transcoder.renderFailure(error, { method, target: url });
    writeResponse(res, renderFailure(form, error, renderRest)).catch((fault) => breakOff(req, res, fault));
  };
  const breakOff = (req: NodeRequest, res: NodeResponse, fault: unknown): void => {
    options.onFault(fault, req.url, requestIds.identify(valuesOf(req), req.headers[requestIdHeader]));
    res.destroy();
  };
  const valuesOf = (req: NodeRequest): ContextValues => arrived.get(req)?.values ?? new CallValues();

  const begin = (req: NodeRequest, res: NodeResponse): void => {
    // A client that sent "Expect: 100-continue" waits for this before it sends the body.
    if (/^100-continue$/i.test(req.headers.expect ?? "")) res.writeContinue();
    options.next(req, res);
  };

  return {
    admit,
    isHeadFaultless: (headers, rawHeaders) =>
      findHeadFault({
        method: String(headers[":method"]),
        headers,
        metadataBytes: countRawBytes(rawHeaders),
        targetHost: undefined,
        rawHeaders,
        announcesBody: true,
        isCall: always,
      }) === undefined,
    breakOff,
    valuesOf,
    routeOf: (req) => arrived.get(req)?.route,
    onRequest(req, res) {
      refuseCutBody(req);
      drainAfterAnswer(req, res, options.maxReceiveMs);
      const targetHost = req.httpVersionMajor === 1 ? readTargetHost(req.url ?? "") : undefined;
      // RFC 9112, section 3.2.2. Connect's handlers need the header.
      if (targetHost !== undefined) req.headers.host = targetHost;
      const { method, route } = findCall(req);
      const fault = findHeadFault(readHead(req, targetHost, () => method !== undefined));
      options.browserHeaders.set(req, res);
      if (fault !== undefined) {
        options.onHeadFault(requestIds.mark(fault, req.headers[requestIdHeader]), req.headers);
        return fail(req, res, fault);
      }
      if (isPreflight(req) && options.browserHeaders.answerPreflight(req, res)) return;
      const client = readClient(findPeerAddress(req), req.headers["x-forwarded-for"]);
      const values = new CallValues().set(clientKey, client);
      arrived.set(req, { values, method, route });
      // Pages are the same bytes for all clients, so they do not count for the memory of a client.
      watchResponse(req, res, method && (() => nameClient(values)), unread);
      if (method === undefined) return begin(req, res);
      const ticket = new Ticket();
      res.once("close", () => ticket.close());
      const { authorization = null } = req.headers;
      const header = new CallHeaders(req.headers);
      const admitting = admit({ method, authorization, values, ticket, header });
      if (admitting === undefined) return begin(req, res);
      admitting
        .then(
          () => {
            // The caller has left. "close" is emitted once, so nothing would end a call that began now.
            if (!ticket.isClosed) begin(req, res);
          },
          (error: ConnectError) => fail(req, res, error),
        )
        .catch((fault) => breakOff(req, res, fault));
    },
  };
}

function readHead(req: NodeRequest, targetHost: string | undefined, isCall: () => boolean) {
  const { method = "", url = "", headers, rawHeaders } = req;
  // HTTP/1.1 has the target outside of its headers. HTTP/2 has it in a pseudo-header.
  let metadataBytes = req.httpVersionMajor === 1 ? url.length : 0;
  for (const text of rawHeaders) metadataBytes += text.length;
  const body = { announcesBody: announcesBody(headers) };
  return { method, headers, metadataBytes, targetHost, rawHeaders, ...body, isCall };
}

/** Reads the host of an absolute target; undefined for a path or "*", "" for any other target. */
function readTargetHost(target: string): string | undefined {
  if (target.startsWith("/") || target === "*") return undefined;
  return /^https?:\/\/([^/?#]*)/i.exec(target)?.[1] ?? "";
}

/** An HTTP/2 request has the address of its connection in its session. */
function findPeerAddress({ stream, socket }: NodeRequest): string | undefined {
  return stream?.session?.socket?.remoteAddress ?? socket?.remoteAddress;
}

function watchResponse(
  req: NodeRequest,
  res: NodeResponse,
  client: (() => string) | undefined,
  unread: UnreadResponses,
): void {
  const { stream } = req;
  const writing: Writing =
    stream === undefined
      ? {
          ...(client && { client }),
          pendingBytes: () => res.writableLength,
          // A response behind an endless one has no socket yet. Node may read no more from theirs, and does not
          // notice when the client leaves.
          drop: () => void req.socket.destroy(),
        }
      : {
          ...(client && { client }),
          pendingBytes: () => stream.writableLength,
          arrivedBytes: () => stream.readableLength,
          drop: () => stream.destroy(),
        };
  unread.watch(writing);
  res.once("close", () => unread.forget(writing));
}
