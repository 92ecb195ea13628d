/**
 * Refuses unary calls at the head of their requests while the server is full. Each form of the refusal is rendered once,
 * so that a refusal costs little more than the stream that carries it.
 */
import http2, { type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { type RestResponse, splitTarget } from "../transcoding/http.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import { nameAddress } from "./admission.ts";
import type { CallsInProgress } from "./calls-in-progress.ts";
import type { ReadClient } from "./client-address.ts";
import { discardRest, drainAfterAnswer } from "./drain-request.ts";
import { readCallForm, renderFailure } from "./failures.ts";
import { toNodeHeaders } from "./metadata.ts";
import type { NodeRequest, NodeResponse, StreamHandler } from "./node-http.ts";
import type { RefusalPace } from "./refusal-pace.ts";
import { type RequestIds, requestIdHeader } from "./request-ids.ts";
import { sendHead } from "./stream-answers.ts";
import type { UnreadResponses } from "./unread-responses.ts";

/** The parts of a server that refusals at the head need. */
export interface FullServerDeps {
  readonly calls: CallsInProgress;
  /** By path: "/package.Service/Method". */
  readonly rpcs: ReadonlyMap<string, DescMethod>;
  readonly transcoder: Transcoder;
  readonly readClient: ReadClient;
  readonly pace: RefusalPace;
  /** Watches refusals that their clients do not read. */
  readonly unread: UnreadResponses;
  /** Milliseconds for the rest of a refused request to arrive. */
  readonly maxReceiveMs: number;
  readonly requestIds: RequestIds;
  /** Counts a refused call. */
  readonly onRefusal: (method: DescMethod) => void;
}

/** Refuses calls while the server is full. Both functions return whether they answer. */
export interface FullServer {
  readonly refuseStream: StreamHandler;
  readonly refuseRequest: (req: NodeRequest, res: NodeResponse) => boolean;
}

/** A rendered refusal. */
interface Refusal {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array | undefined;
}

/** The part of a request that its refusal depends on. */
interface Head {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly peer: string | undefined;
}

/** Milliseconds of the event loop that a refusal takes on a slow core, with the request that it answers. */
const refusalMs = 0.1;

/** Forms to remember: each has a media type that clients choose. */
const maxForms = 100;

/** Creates the refusals of one server. */
export function createFullServer(deps: FullServerDeps): FullServer {
  const { calls, rpcs, transcoder, readClient, pace, unread, requestIds } = deps;
  const identify = (headers: IncomingHttpHeaders): string => requestIds.choose(headers[requestIdHeader]);
  const forms = new Map<string, Refusal>();

  const find = ({ method, target, headers, peer }: Head): Refusal | undefined => {
    if (!calls.isCrowded()) return undefined;
    const rpc = rpcs.get(splitTarget(target).path);
    const route = rpc === undefined ? transcoder.find(method, target)?.match.route : undefined;
    const called = rpc ?? route?.spec.method;
    if (called?.methodKind !== "unary") return undefined;
    const name = (): string => nameAddress(readClient(peer, headers["x-forwarded-for"]));
    if (!calls.isFullFor(called, name)) return undefined;
    deps.onRefusal(called);
    const form = readCallForm({ headers, url: target }, rpc !== undefined);
    const key = `${form.protocol} ${form.contentType} ${route?.style ?? ""}`;
    const known = forms.get(key);
    if (known !== undefined) return known;
    const error = calls.fullRefusal;
    const rendered = toRefusal(
      renderFailure(form, error, () => transcoder.renderFailure(error, { method, target })),
    );
    if (forms.size < maxForms) forms.set(key, rendered);
    return rendered;
  };

  return {
    refuseStream(stream, headers) {
      const { ":method": method = "", ":path": target = "" } = headers;
      const refusal = find({ method, target, headers, peer: stream.session?.socket?.remoteAddress });
      if (refusal === undefined) return false;
      stream.resume();
      const { status, body } = refusal;
      const isSent = pace.send(refusalMs, () => {
        // Made only now: thousands may wait.
        const fields = { ...refusal.headers, ":status": status, [requestIdHeader]: identify(headers) };
        if (!sendHead(stream, fields, { endStream: body === undefined })) return;
        if (body !== undefined) {
          const writing = { pendingBytes: () => stream.writableLength, drop: () => stream.destroy() };
          unread.watch(writing);
          stream.once("close", () => unread.forget(writing));
          stream.end(body);
        }
        if (!stream.readableEnded) discardRest(stream);
      });
      if (!isSent) stream.close(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return true;
    },
    refuseRequest(req, res) {
      const { method = "", url: target = "", headers, socket } = req;
      const refusal = find({ method, target, headers, peer: socket.remoteAddress });
      if (refusal === undefined) return false;
      drainAfterAnswer(req, res, deps.maxReceiveMs);
      const isSent = pace.send(refusalMs, () => {
        if (res.destroyed) return;
        res.writeHead(refusal.status, { ...refusal.headers, [requestIdHeader]: identify(headers) });
        res.end(refusal.body);
      });
      if (!isSent) socket.destroy();
      return true;
    },
  };
}

function toRefusal({ status, headers, body }: RestResponse): Refusal {
  // Refusals have no streams.
  const bytes = body instanceof Uint8Array && body.length > 0 ? body : undefined;
  return { status, headers: toNodeHeaders(headers), body: bytes };
}
