/**
 * Serves RPCs as REST calls, from their google.api.http options alone.
 *
 *     target → router → binding → the RPC with its interceptors → rendering
 *
 * It knows descriptors and implementations and no service: any proto will do. It speaks a small HTTP of its
 * own (RestRequest, RestResponse); src/server/rest.ts connects that to sockets.
 */
import type { Message, Registry } from "@bufbuild/protobuf";
import { createRegistry } from "@bufbuild/protobuf";
import type { HandlerContext, Interceptor, ServiceImplSpec } from "@connectrpc/connect";
import { type ConnectError, createHandlerContext } from "@connectrpc/connect";
import { invokeUnaryImplementation, transformInvokeImplementation } from "@connectrpc/connect/protocol";
import { file_google_rpc_error_details } from "#gen/google/rpc/error_details_pb.ts";
import { explainAbort, httpStatusOf, refuse, toConnectError } from "../errors.ts";
import { readRequestMessages } from "./binding.ts";
import type { BodyLimits, IncomingBody } from "./body.ts";
import { collectFiles } from "./descriptors.ts";
import { chooseMediaType } from "./negotiation.ts";
import {
  createRenderer,
  entityTagOf,
  matchesEntityTag,
  type Renderer,
  renderError,
  type StreamFormat,
  streamFormats,
} from "./rendering.ts";
import { createRouter, type RouteMatch } from "./router.ts";
import { compileRoutes, type Route } from "./routes.ts";
import { readTimeout } from "./timeout.ts";

/** An HTTP request, as any server has it. */
export interface RestRequest {
  /** The method in upper case. */
  readonly method: string;
  /** The raw request target: path and query, not decoded, not normalised. */
  readonly target: string;
  readonly headers: Headers;
  /** Undefined if the request has no body. */
  readonly body: AsyncIterable<Uint8Array> | undefined;
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal;
}

/** An HTTP response. The body is whole, or arrives piece by piece. */
export interface RestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
  /** Set by the RPC as its trailers; to be read when a streamed body has ended. */
  readonly trailers?: Headers;
}

/** What a transcoder is made of. */
export interface TranscoderOptions {
  /** Descriptors and implementations: `createServiceImplSpec(Service, implementation)` of Connect. */
  readonly services: readonly ServiceImplSpec[];
  /** Run for every call, outermost first, as Connect runs them for RPCs. */
  readonly interceptors?: readonly Interceptor[];
  /** Bytes of a body, or of one message of a stream; 4 MiB by default. */
  readonly maxBytes?: number;
  /** Milliseconds within which a body must have arrived; 30,000 by default. */
  readonly maxReceiveMs?: number;
  /** Aborts the signals of all running calls. */
  readonly shutdownSignal?: AbortSignal;
}

/** Answers REST requests. */
export interface Transcoder {
  /** Every route, for the log and the API description. */
  readonly routes: readonly Route[];
  /** Answers a request; never throws. */
  handle(request: RestRequest): Promise<RestResponse>;
  /** Renders an error that arose elsewhere in the same form. */
  renderFailure(error: ConnectError): RestResponse;
}

/** Everything about one server that its calls share. */
interface Setup {
  readonly limits: BodyLimits;
  readonly interceptors: Interceptor[];
  readonly registry: Registry;
  readonly shutdownSignal: AbortSignal | undefined;
}

/** One call on its way through. */
interface Call {
  readonly request: RestRequest;
  readonly match: RouteMatch<Route>;
  readonly rawQuery: string;
  readonly setup: Setup;
}

/** How long an answer may be held back for its first message, so that an early error keeps its status. */
const firstMessageGraceMs = 250;

/** Shared by all calls that end well: an abort without a reason would build an error with a stack. */
const finished = new Error("the call has ended");

/**
 * Makes a transcoder.
 *
 * @throws Error naming the RPC (and the other one, for a conflict), if a rule could never work.
 */
export function createTranscoder(options: TranscoderOptions): Transcoder {
  const routes = compileRoutes(options.services);
  const router = createRouter(routes);
  const setup: Setup = {
    limits: { maxBytes: options.maxBytes ?? 4 * 1024 * 1024, maxReceiveMs: options.maxReceiveMs ?? 30_000 },
    interceptors: [...(options.interceptors ?? [])],
    registry: createRegistry(
      ...collectFiles([
        file_google_rpc_error_details,
        ...options.services.map(({ service }) => service.file),
      ]),
    ),
    shutdownSignal: options.shutdownSignal,
  };
  const renderFailure = (error: ConnectError): RestResponse => failureResponse(error, setup.registry);

  const route = async (request: RestRequest): Promise<RestResponse> => {
    const { path, rawQuery } = splitTarget(request.target);
    if (path === "*") return answerAsterisk(request.method);
    const match = router.match(request.method, path);
    if (match.route !== undefined) return runCall({ request, match, rawQuery, setup });
    const allow = allowedMethods(match.methods);
    if (allow === "") throw refuse("ROUTE_NOT_FOUND", `there is nothing at ${path}`, { path });
    if (request.method === "OPTIONS") return emptyResponse(204, { allow });
    const error = refuse("METHOD_NOT_ALLOWED", `${path} takes ${allow}, not ${request.method}`, { allow });
    error.metadata.set("allow", allow);
    throw error;
  };

  return {
    routes,
    renderFailure,
    async handle(request) {
      const response = await route(request).catch((thrown: unknown) => renderFailure(toConnectError(thrown)));
      return request.method === "HEAD" ? withoutContent(response) : response;
    },
  };
}

/** Takes path and query out of a target in origin, absolute or asterisk form (RFC 9112, section 3.2). */
function splitTarget(target: string): { path: string; rawQuery: string } {
  const origin = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "").replace(/#.*$/s, "");
  const mark = origin.indexOf("?");
  const path = mark < 0 ? origin : origin.slice(0, mark);
  const rawQuery = mark < 0 ? "" : origin.slice(mark + 1);
  if (path === "*") return { path, rawQuery };
  return { path: path.startsWith("/") ? path : `/${path}`, rawQuery };
}

/** RFC 9112, section 3.2.4: the asterisk stands for the server itself, and for OPTIONS alone. */
function answerAsterisk(method: string): RestResponse {
  if (method === "OPTIONS") return emptyResponse(204, {});
  throw refuse("TARGET_INVALID", `the target "*" is for OPTIONS, not for ${method}`);
}

function allowedMethods(methods: readonly string[]): string {
  if (methods.length === 0) return "";
  const all = new Set(methods);
  if (all.has("GET")) all.add("HEAD");
  all.add("OPTIONS");
  return [...all].sort().join(", ");
}

async function runCall(call: Call): Promise<RestResponse> {
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
  if (streams) return runStream(call, context, input, renderer, format);
  try {
    return finishUnary(call, context, await invokeSingle(call, context, input), renderer);
  } catch (thrown) {
    throw explainAbort(toConnectError(thrown), context.signal);
  } finally {
    context.abort(finished);
  }
}

function chooseFormat(accept: string | null, streams: boolean, raw: boolean): StreamFormat | undefined {
  // Raw bytes have whatever media type the implementation gives them; nothing can be promised before.
  if (raw) return undefined;
  if (!streams) {
    chooseMediaType(accept, ["application/json"]);
    return undefined;
  }
  return streamFormats.get(chooseMediaType(accept, [...streamFormats.keys()]));
}

/** A HandlerContext that can be ended. */
type CallContext = ReturnType<typeof createHandlerContext>;

function createContext({ request, match, setup }: Call): CallContext {
  const timeoutMs = readTimeout(request.headers);
  return createHandlerContext({
    service: match.route.spec.method.parent,
    method: match.route.spec.method,
    protocolName: "rest",
    requestMethod: request.method,
    url: request.target,
    requestHeader: request.headers,
    requestSignal: request.signal,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(setup.shutdownSignal === undefined ? {} : { shutdownSignal: setup.shutdownSignal }),
  });
}

function incomingBody(request: RestRequest, signal: AbortSignal): IncomingBody | undefined {
  return request.body && { chunks: request.body, headers: request.headers, signal };
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

function finishUnary(
  call: Call,
  context: HandlerContext,
  message: Message,
  renderer: Renderer,
): RestResponse {
  const headers = new Headers(context.responseHeader);
  // As the Connect protocol does for unary calls, which have no room for trailers.
  context.responseTrailer.forEach((value, name) => {
    headers.set(`trailer-${name}`, value);
  });
  let body: Uint8Array;
  if (renderer.raw) {
    const raw = renderer.toRaw(message);
    headers.set("content-type", raw.contentType);
    body = raw.data;
  } else {
    headers.set("content-type", "application/json");
    body = Buffer.from(renderer.toJsonText(message));
  }
  const safe = call.request.method === "GET" || call.request.method === "HEAD";
  if (!headers.has("cache-control")) headers.set("cache-control", safe ? "private, no-cache" : "no-store");
  if (safe) {
    const tag = headers.get("etag") ?? entityTagOf(body);
    headers.set("etag", tag);
    if (matchesEntityTag(call.request.headers.get("if-none-match"), tag)) {
      headers.delete("content-type");
      return { status: 304, headers, body: new Uint8Array() };
    }
  }
  headers.set("content-length", String(body.length));
  return { status: 200, headers, body };
}

async function runStream(
  call: Call,
  context: CallContext,
  input: AsyncIterable<Message>,
  renderer: Renderer,
  format: StreamFormat | undefined,
): Promise<RestResponse> {
  const { spec } = call.match.route;
  const output = transformInvokeImplementation(
    spec,
    context,
    call.setup.interceptors,
  )(input)[Symbol.asyncIterator]();
  const first = output.next();
  first.catch(() => {}); // Whoever writes the answer awaits it; a caller that has gone leaves it to nobody.
  try {
    // An error that comes at once still gets a status of its own.
    await Promise.race([first, wait(firstMessageGraceMs)]);
    const rawType = renderer.raw
      ? await first.then((next) => next.done !== true && renderer.toRaw(next.value))
      : false;
    const headers = new Headers(context.responseHeader);
    headers.set(
      "content-type",
      format?.mediaType ?? (rawType ? rawType.contentType : "application/octet-stream"),
    );
    headers.set("cache-control", "no-store");
    headers.set("vary", "accept");
    const pieces =
      format === undefined
        ? renderRawStream(output, first, renderer, context)
        : renderStream(output, first, renderer, format, context, call.setup.registry);
    return { status: 200, headers, body: pieces, trailers: context.responseTrailer };
  } catch (thrown) {
    const error = explainAbort(toConnectError(thrown), context.signal);
    context.abort(error);
    throw error;
  }
}

/** Waits, without keeping the process alive. */
function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref());
}

async function* renderStream(
  output: AsyncIterator<Message>,
  first: Promise<IteratorResult<Message>>,
  renderer: Renderer,
  format: StreamFormat,
  context: CallContext,
  registry: Registry,
): AsyncGenerator<Uint8Array> {
  let index = 0;
  try {
    if (format.open !== "") yield Buffer.from(format.open);
    for (let next = await first; next.done !== true; next = await output.next()) {
      yield Buffer.from(format.message(renderer.toJsonText(next.value), index));
      index += 1;
    }
  } catch (thrown) {
    // The status has been sent: the error is the last thing in the body instead.
    const error = explainAbort(toConnectError(thrown), context.signal);
    yield Buffer.from(format.error(renderError(error, registry), index));
  } finally {
    context.abort(finished);
    // Not awaited: a handler that waits for its next event would hold the end of the answer back.
    void output.return?.()?.catch(() => {});
  }
  if (format.close !== "") yield Buffer.from(format.close);
}

/** Passes raw bytes on; an error breaks the connection off, for there is no place in the bytes to tell it. */
async function* renderRawStream(
  output: AsyncIterator<Message>,
  first: Promise<IteratorResult<Message>>,
  renderer: Renderer,
  context: CallContext,
): AsyncGenerator<Uint8Array> {
  try {
    for (let next = await first; next.done !== true; next = await output.next())
      yield renderer.toRaw(next.value).data;
  } finally {
    context.abort(finished);
    void output.return?.()?.catch(() => {});
  }
}

function failureResponse(error: ConnectError, registry: Registry): RestResponse {
  const body = Buffer.from(renderError(error, registry));
  const headers = new Headers(error.metadata);
  headers.set("content-type", "application/json");
  headers.set("content-length", String(body.length));
  headers.set("cache-control", "no-store");
  return { status: httpStatusOf(error), headers, body };
}

function emptyResponse(status: number, headers: Record<string, string>): RestResponse {
  return { status, headers: new Headers(headers), body: new Uint8Array() };
}

function withoutContent(response: RestResponse): RestResponse {
  if (!(response.body instanceof Uint8Array)) void closeStream(response.body);
  return { ...response, body: new Uint8Array() };
}

/** Ends a stream that nobody is going to read. */
async function closeStream(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _piece of body) return;
}
