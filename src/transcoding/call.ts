/** Runs one call: from the request to the RPC with its interceptors, and back to an answer. */

import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { invokeUnaryImplementation, transformInvokeImplementation } from "@connectrpc/connect/protocol";
import { explainAbort, refuse, toConnectError } from "../errors.ts";
import { encodeBody } from "../protocol/compression.ts";
import { computeEntityTag, matchesEntityTag, toWeakTag } from "../protocol/entity-tags.ts";
import { raceSignal } from "../protocol/interrupt.ts";
import { readRequestMessages } from "./binding.ts";
import type { IncomingBody } from "./body.ts";
import { type Call, createContext, finished } from "./call-context.ts";
import type { RestRequest, RestResponse } from "./http.ts";
import { chooseMediaType } from "./negotiation.ts";
import { createRenderer, type Renderer, type StreamFormat, streamFormats, toBody } from "./rendering.ts";
import { answerStream } from "./stream-answer.ts";

/** Runs a call. @throws the error of the call */
export async function runCall(call: Call): Promise<RestResponse> {
  const { spec } = call.match.route;
  const renderer = createRenderer(call.match.route, call.setup.registry);
  const streams = spec.kind === "server_streaming" || spec.kind === "bidi_streaming";
  const format = chooseFormat(call.request.headers.get("accept"), streams, renderer.raw);
  const context = createContext(call);
  const input = readRequestMessages(
    call.match,
    call.rawQuery,
    incomingBody(call.request, context.signal),
    call.setup.limits,
    call.setup.registry,
  );
  if (streams) return answerStream(call, context, input, renderer, format);
  try {
    const message = await raceSignal(invokeSingle(call, context, input), context.signal);
    return await finishUnary(call, context, message, renderer);
  } catch (thrown) {
    throw explainAbort(toConnectError(thrown), context.signal);
  } finally {
    context.abort(finished);
  }
}

function chooseFormat(accept: string | null, streams: boolean, raw: boolean): StreamFormat | undefined {
  // The implementation sets the media type of raw bytes, so it is not known yet.
  if (raw) return undefined;
  if (!streams) {
    chooseMediaType(accept, ["application/json"]);
    return undefined;
  }
  return streamFormats.get(chooseMediaType(accept, [...streamFormats.keys()]));
}

function incomingBody(request: RestRequest, signal: AbortSignal): IncomingBody | undefined {
  const { body, headers, meter } = request;
  return body && { chunks: body, headers, signal, meter };
}

async function invokeSingle(
  call: Call,
  context: HandlerContext,
  input: AsyncIterable<Message>,
): Promise<Message> {
  const { spec } = call.match.route;
  const { interceptors } = call.setup;
  if (spec.kind === "unary") {
    for await (const message of input) return invokeUnaryImplementation(spec, context, message, interceptors);
  }
  for await (const message of transformInvokeImplementation(spec, context, interceptors)(input))
    return message;
  throw refuse("INTERNAL", "the call ended without an answer");
}

async function finishUnary(
  call: Call,
  context: HandlerContext,
  message: Message,
  renderer: Renderer,
): Promise<RestResponse> {
  const headers = new Headers(context.responseHeader);
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
    plain = toBody(renderer.toJsonText(message));
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
