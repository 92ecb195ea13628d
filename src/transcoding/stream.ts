/** Runs one call: from the request to the RPC with its interceptors, and back to an answer. */
import type { Message } from "@bufbuild/protobuf";
import { createContextValues } from "@connectrpc/connect";
import { transformInvokeImplementation } from "@connectrpc/connect/protocol";
import { bodyTooLarge, explainAbort, refuse, toConnectError } from "../errors.ts";
import { encodeBody } from "../protocol/compression.ts";
import { computeEntityTag, matchesEntityTag, toWeakTag } from "../protocol/entity-tags.ts";
import { raceSignal } from "../protocol/interrupt.ts";
import { callTooSlow, readTimeout } from "../protocol/timeout.ts";
import { UnaryCall, type UnaryHandler, type UnarySpec } from "../protocol/unary-call.ts";
import { readRequestMessage, readRequestMessages } from "./binding.ts";
import type { BodyLimits, IncomingBody } from "./body.ts";
import { type Call, type CallContext, createContext, finished } from "./call-context.ts";
import type { RestRequest, RestResponse } from "./http.ts";
import { chooseMediaType } from "./negotiation.ts";
import { requireQueryType } from "./query-method.ts";
import { createRenderer, type Renderer, type StreamFormat, streamFormats, toBody } from "./rendering.ts";
import { answerStream } from "./stream-answer.ts";
import { readSystemParameters } from "./system-parameters.ts";

/** Runs a call. @throws the error of the call */
export async function runCall(found: Call): Promise<RestResponse> {
  const { match, request, setup } = found;
  const { route } = match;
  const { spec } = route;
  if (request.method === "QUERY") requireQueryType(route, request.headers);
  const renderer = setup.renderers.get(route) ?? createRenderer(route, setup.registry);
  const call =
    route.style === "google" ? { ...found, ...readSystemParameters(route, found.rawQuery) } : found;
  if (spec.kind === "unary") {
    requireJson(request, renderer);
    const handle = setup.handlers.get(spec);
    if (handle === undefined) throw new Error(`no handler is composed for ${spec.method.name}`);
    return runUnary(call, spec, handle, renderer);
  }
  const limits = findLimits(call);
  const streams = spec.kind !== "client_streaming";
  const format = streams ? chooseFormat(request, renderer) : requireJson(request, renderer);
  const context = createContext(call);
  const body = incomingBody(request, () => context.signal);
  const input = readRequestMessages(match, call.rawQuery, body, limits, setup.registry);
  if (streams) return answerStream(call, context, input, renderer, format);
  try {
    const message = await raceSignal(invokeClientStream(call, context, input), context.signal);
    return await finishUnary(call, context, message, renderer);
  } catch (thrown) {
    throw explainAbort(toConnectError(thrown), context.signal);
  } finally {
    context.abort(finished);
  }
}

async function runUnary(
  found: Call,
  spec: UnarySpec,
  handle: UnaryHandler,
  renderer: Renderer,
): Promise<RestResponse> {
  const { match, rawQuery, form, request, setup } = found;
  const limits = findLimits(found);
  const timeoutMs = readTimeout(request.headers);
  const call = new UnaryCall(
    {
      method: spec.method,
      protocolName: "rest",
      requestMethod: request.method,
      url: request.target,
      requestHeader: request.headers,
      values: request.contextValues ?? createContextValues(),
    },
    setup.running,
  );
  if (timeoutMs !== undefined) call.setDeadline(timeoutMs);
  if (request.signal.aborted) call.abort(request.signal.reason);
  else request.signal.addEventListener("abort", () => call.abort(request.signal.reason), { once: true });
  try {
    call.endWithin(Number.POSITIVE_INFINITY, () => undefined);
    const body = incomingBody(request, () => call.signal);
    const input = await call.race(readRequestMessage(match, rawQuery, body, limits, setup.registry));
    const { maxCallMs = Number.POSITIVE_INFINITY } = setup;
    call.endWithin(maxCallMs, () => callTooSlow(maxCallMs));
    return await finishUnary({ match, request, form }, call, await handle(call, input), renderer);
  } finally {
    call.finish();
  }
}

/** Finds the limits of the body of a call. A query may not have more bytes either. @throws BODY_TOO_LARGE */
function findLimits({ match, rawQuery, setup }: Call): BodyLimits {
  const { spec } = match.route;
  const limits = setup.limits.get(spec);
  if (limits === undefined) throw new Error(`no limits are known for ${spec.method.name}`);
  if (rawQuery.length > limits.maxBytes) throw bodyTooLarge(limits.maxBytes);
  return limits;
}

/** Refuses a request that does not accept the answer. Raw bytes have a media type that only the handler knows. */
function requireJson({ headers }: RestRequest, { raw }: Renderer): undefined {
  if (!raw) chooseMediaType(headers.get("accept"), ["application/json"]);
}

function chooseFormat({ headers }: RestRequest, { raw }: Renderer): StreamFormat | undefined {
  if (raw) return undefined;
  return streamFormats.get(chooseMediaType(headers.get("accept"), [...streamFormats.keys()]));
}

function incomingBody(request: RestRequest, signal: () => AbortSignal): IncomingBody | undefined {
  const { body, headers, meter } = request;
  return body && { chunks: body, headers, signal: signal(), meter };
}

async function invokeClientStream(
  call: Call,
  context: CallContext,
  input: AsyncIterable<Message>,
): Promise<Message> {
  const { spec } = call.match.route;
  const { interceptors } = call.setup;
  for await (const message of transformInvokeImplementation(spec, context, interceptors)(input))
    return message;
  throw refuse("INTERNAL", "the call ended without an answer");
}

async function finishUnary(
  call: Pick<Call, "match" | "request" | "form">,
  context: Pick<CallContext, "responseHeader" | "responseTrailer">,
  message: Message,
  renderer: Renderer,
): Promise<RestResponse> {
  const headers = context.responseHeader;
  // As the Connect protocol does for unary calls, which have no room for trailers.
  context.responseTrailer.forEach((value, name) => {
    headers.set(`trailer-${name}`, value);
  });
  let plain: Uint8Array;
  if (renderer.raw) {
    const raw = renderer.toRaw(message);
    headers.set("content-type", raw.contentType);
    plain = raw.data;
  } else {
    headers.set("content-type", "application/json");
    plain = toBody(renderer.toJsonText(message, call.form));
  }
  const { output } = call.match.route.spec.method;
  const acceptEncoding = call.request.headers.get("accept-encoding");
  const { body, isCoded } = await encodeBody(output, acceptEncoding, headers, plain);
  const safe = call.request.method === "GET" || call.request.method === "HEAD";
  if (!headers.has("cache-control")) headers.set("cache-control", safe ? "private, no-cache" : "no-store");
  if (safe) {
    const strongTag = headers.get("etag") ?? computeEntityTag(plain);
    // RFC 9110, section 8.8.1: a strong tag identifies exact bytes, and compression changes them.
    const tag = isCoded ? toWeakTag(strongTag) : strongTag;
    headers.set("etag", tag);
    if (matchesEntityTag(call.request.headers.get("if-none-match"), tag)) {
      headers.delete("content-type");
      headers.delete("content-encoding");
      return { status: 304, headers, body: new Uint8Array() };
    }
  }
  headers.set("content-length", String(body.length));
  return { status: 200, headers, body };
}
