/**
 * Serves gRPC streams, gRPC-Web and Connect with Connect's own handlers, with more exact errors for requests that
 * cannot be read.
 */
import type { DescMethod, Message, Registry } from "@bufbuild/protobuf";
import type {
  ConnectRouter,
  ContextValues,
  HandlerContext,
  Interceptor,
  ServiceImplSpec,
} from "@connectrpc/connect";
import { type ConnectError, createContextKey, createContextValues } from "@connectrpc/connect";
import {
  createAsyncIterable,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { excerpt } from "../errors/shorten.ts";
import { refuse, toConnectError } from "../errors.ts";
import type { RestResponse } from "../transcoding/http.ts";
import { readWhole } from "./drain-request.ts";
import { endGrpcResponse } from "./failures.ts";
import { setAcceptedEncodings } from "./grpc-status.ts";
import { isGrpcWebText, toBinaryRequest, toTextResponse } from "./grpc-web-text.ts";
import { meterEnvelopes } from "./meter-envelopes.ts";
import {
  checkHead,
  checkMessages,
  findQueryFault,
  type RequestLimits,
  readMessage,
  toIncoming,
  withoutBodyHeaders,
} from "./request-checks.ts";
import { type RequestIds, requestIdHeader } from "./request-ids.ts";

/** Options that the handlers share. */
export interface TightenOptions {
  readonly limitsOf: (method: DescMethod) => RequestLimits;
  readonly registry: Registry;
  /** Renders an error for a request without a known protocol. */
  readonly renderFailure: (error: ConnectError) => RestResponse;
  readonly requestIds: RequestIds;
}

const messagesKey = createContextKey<Message[]>([], {
  description: "messages that were read before Connect could",
});
const refusalKey = createContextKey<ConnectError | undefined>(undefined, { description: "why not to read" });

/** The outermost interceptor: replaces the empty messages that Connect read with the real ones. */
export const messageInterceptor: Interceptor = (next) => (req) => {
  const messages = req.contextValues.get(messagesKey);
  if (!req.stream) return next({ ...req, message: messages.shift() ?? req.message });
  return next({ ...req, message: replaceEach(req.message, messages) });
};

async function* replaceEach<T>(empty: AsyncIterable<T>, messages: Message[]): AsyncGenerator<T> {
  // The queue holds messages of the type that Connect reads, in the same order.
  for await (const message of empty) yield (messages.shift() as T | undefined) ?? message;
}

/** Ends a call that was refused before its body was read, in the form of its protocol. */
export function requestGate({ values }: HandlerContext): void {
  const refusal = values.get(refusalKey);
  if (refusal !== undefined) throw refusal;
}

/** Registers services whose implementations are already bound to their descriptors. */
export function addServices(router: ConnectRouter, services: readonly ServiceImplSpec[]): void {
  for (const { methods } of services) {
    // A spec pairs each method with an implementation of its kind. The map loses the type of the pair.
    for (const { method, impl } of Object.values(methods)) router.rpc(method, impl as never);
  }
}

/** Wraps the handlers that a router has. They need requestGate and messageInterceptor among its options. */
export function tightenHandlers(router: ConnectRouter, options: TightenOptions): void {
  router.handlers.forEach((handler, index) => {
    router.handlers[index] = tighten(handler, options);
  });
}

function tighten(handler: UniversalHandler, options: TightenOptions): UniversalHandler {
  const handleBinary = async (request: UniversalServerRequest): Promise<UniversalServerResponse> => {
    const contextValues = request.contextValues ?? createContextValues();
    const response = await answer(handler, { ...request, contextValues }, contextValues, options);
    const isUnexplained = response.status >= 400 && response.body === undefined;
    return isUnexplained
      ? explainStatus(handler, request, response.status, options)
      : endGrpcResponse(response);
  };
  const handle = async (request: UniversalServerRequest): Promise<UniversalServerResponse> =>
    isGrpcWebText(request)
      ? toTextResponse(await handleBinary(toBinaryRequest(request)))
      : handleBinary(request);
  const { protocolNames, service, method, requestPath, allowedMethods, supportedContentType } = handler;
  return Object.assign(handle, {
    protocolNames,
    service,
    method,
    requestPath,
    allowedMethods,
    supportedContentType,
  });
}

async function answer(
  handler: UniversalHandler,
  request: UniversalServerRequest,
  contextValues: ContextValues,
  { limitsOf, registry, requestIds }: TightenOptions,
): Promise<UniversalServerResponse> {
  const { method } = handler;
  const checks = { limits: limitsOf(method), registry };
  const refuseWith = async (refusal: ConnectError): Promise<UniversalServerResponse> => {
    contextValues.set(refusalKey, requestIds.mark(refusal, request.header.get(requestIdHeader)));
    const response = await handler(request);
    const header = new Headers(response.header);
    setAcceptedEncodings(header, refusal);
    return { ...response, header };
  };
  try {
    checkHead(request);
  } catch (error) {
    return refuseWith(toConnectError(error));
  }
  // The message of a GET is in its target, so it can be checked before the call.
  if (request.method === "GET") {
    const fault = await findQueryFault(method, request, checks);
    return fault === undefined ? handler(request) : refuseWith(fault);
  }
  const messages: Message[] = [];
  contextValues.set(messagesKey, messages);
  const onMessage = (message: Message): void => void messages.push(message);
  const isUnary = method.methodKind === "unary";
  const metered = isUnary ? request : { ...request, body: meterBody(request, checks.limits.maxBytes) };
  const body = (isUnary ? readMessage : checkMessages)(method, metered, checks, onMessage);
  const header = isUnary ? withoutBodyHeaders(request.header) : request.header;
  return handler({ ...request, header, body: untilAnswered(metered, body) });
}

/** In a unary call the whole body counts until the call ends. In a stream only the arriving message counts. */
function meterBody(request: UniversalServerRequest, maxBytes: number): UniversalServerRequest["body"] {
  const incoming = toIncoming(request);
  return incoming ? meterEnvelopes(incoming.chunks, incoming.meter, maxBytes) : request.body;
}

function untilAnswered(
  request: UniversalServerRequest,
  body: AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const incoming = toIncoming(request);
  return incoming !== undefined && request.httpVersion.startsWith("2") ? readWhole(incoming, body) : body;
}

/** Adds a body to Connect's answers that have only a status, as for an unsupported method or media type. */
function explainStatus(
  handler: UniversalHandler,
  request: UniversalServerRequest,
  status: number,
  { renderFailure, requestIds }: TightenOptions,
): UniversalServerResponse {
  const error = describeStatus(handler, request, status);
  const { headers, body } = renderFailure(requestIds.mark(error, request.header.get(requestIdHeader)));
  // Not the bare media type: Connect clients would take the body for an error in Connect's form.
  headers.set("content-type", "application/json; charset=utf-8");
  return { status, header: headers, body: body instanceof Uint8Array ? createAsyncIterable([body]) : body };
}

function describeStatus(
  handler: UniversalHandler,
  request: UniversalServerRequest,
  status: number,
): ConnectError {
  if (status === 405) {
    const allow = handler.allowedMethods.join(", ");
    const error = refuse(
      "METHOD_NOT_ALLOWED",
      `${handler.requestPath} supports ${allow}, not ${request.method}`,
      { allow },
    );
    error.metadata.set("allow", allow);
    return error;
  }
  if (status === 415) {
    const contentType = request.header.get("content-type") ?? "none";
    const known =
      "application/json, application/proto, application/grpc, application/grpc-web or application/grpc-web-text";
    return refuse(
      "MEDIA_TYPE_UNSUPPORTED",
      `content-type ${excerpt(contentType)} does not belong to a protocol of this call; send ${known}`,
      {
        contentType,
      },
    );
  }
  return refuse("HTTP_INVALID", `${handler.requestPath} cannot be called over HTTP/${request.httpVersion}`);
}
