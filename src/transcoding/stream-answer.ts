/** Answers a streaming call: JSON lines, a JSON array, server-sent events, or raw bytes. */
import type { Message } from "@bufbuild/protobuf";
import { transformInvokeImplementation } from "@connectrpc/connect/protocol";
import { raceSignal } from "../calls/interrupt.ts";
import { finished } from "../calls/unary-call.ts";
import { explainAbort, toConnectError } from "../errors.ts";
import { matchesEntityTag } from "../http/entity-tags.ts";
import type { Call, CallContext } from "./call-context.ts";
import { type RestResponse, withoutContent } from "./http.ts";
import { answersRaw, readRaw, renderError, renderJson, type StreamFormat } from "./rendering.ts";
import type { Route } from "./routes.ts";

/**
 * Milliseconds to wait for the first message before sending the status, so that an early error keeps its own.
 */
const firstMessageGraceMs = 250;

/** Starts the answer. Its body continues while the RPC runs. */
export async function answerStream(
  call: Call,
  context: CallContext,
  input: AsyncIterable<Message>,
  format: StreamFormat | undefined,
): Promise<RestResponse> {
  const { route } = call.match;
  const run = transformInvokeImplementation(route.spec, context, call.setup.interceptors);
  const output = run(input)[Symbol.asyncIterator]();
  const first = raceSignal(output.next(), context.signal);
  first.catch(() => {}); // The code below awaits it, unless the caller disconnects first.
  try {
    // An early error still gets its own HTTP status.
    await Promise.race([first, wait(firstMessageGraceMs)]);
    const raw =
      answersRaw(route) && (await first.then((next) => next.done !== true && readRaw(route, next.value)));
    const headers = new Headers(context.responseHeader);
    headers.set("content-type", format?.mediaType ?? (raw ? raw.contentType : "application/octet-stream"));
    if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
    if (format === undefined) {
      const pieces = renderRawStream(output, first, route, context);
      return answerContent(call, headers, pieces, context.responseTrailer);
    }
    headers.set("vary", "accept");
    const pieces = renderStream(output, first, format, context, call);
    return { status: 200, headers, body: pieces, trailers: context.responseTrailer };
  } catch (thrown) {
    const error = explainAbort(toConnectError(thrown), context.signal);
    context.abort(error);
    throw error;
  }
}

/** Answers with raw bytes, in the part that the handler announced: see openContent in byte-ranges.ts. */
function answerContent(
  { request }: Call,
  headers: Headers,
  pieces: AsyncGenerator<Uint8Array>,
  trailers: Headers,
): RestResponse {
  const tag = headers.get("etag");
  if (tag !== null && matchesEntityTag(request.headers.get("if-none-match"), tag)) {
    headers.delete("content-type");
    return withoutContent({ status: 304, headers, body: pieces });
  }
  const status = headers.has("content-range") ? 206 : 200;
  const announced = headers.get("content-length");
  const body = announced === null ? pieces : requireLength(pieces, Number(announced));
  return { status, headers, body, trailers };
}

/** Fails if the pieces have more or fewer bytes than announced: a client would take other bytes for content. */
async function* requireLength(pieces: AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array> {
  let left = length;
  for await (const piece of pieces) {
    left -= piece.length;
    if (left < 0) break;
    yield piece;
  }
  if (left !== 0) throw new Error(`the content does not have the ${length} bytes that its handler announced`);
}

/** Waits without keeping the process alive. */
function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref());
}

async function* renderStream(
  output: AsyncIterator<Message>,
  first: Promise<IteratorResult<Message>>,
  format: StreamFormat,
  context: CallContext,
  { form, setup, match: { route } }: Call,
): AsyncGenerator<Uint8Array> {
  // Each stream message is one line.
  const { enumsAsNumbers = false } = form ?? {};
  let index = 0;
  try {
    if (format.open !== "") yield Buffer.from(format.open);
    for (let next = await first; next.done !== true; next = await raceSignal(output.next(), context.signal)) {
      yield Buffer.from(
        format.message(renderJson(route, next.value, setup.registry, { enumsAsNumbers }), index),
      );
      index += 1;
    }
    if (format.end !== undefined) yield Buffer.from(format.end);
  } catch (thrown) {
    // The status has already been sent, so the error becomes the last part of the body.
    const error = explainAbort(toConnectError(thrown), context.signal);
    yield Buffer.from(format.error(renderError(error, setup.registry, route.style), index));
  } finally {
    context.abort(finished);
    // Not awaited: a handler that waits for its next event would delay the end of the answer.
    void output.return?.()?.catch(() => {});
  }
  if (format.close !== "") yield Buffer.from(format.close);
}

/** Passes raw bytes on. An error closes the connection, because raw bytes have no place for an error. */
async function* renderRawStream(
  output: AsyncIterator<Message>,
  first: Promise<IteratorResult<Message>>,
  route: Route,
  context: CallContext,
): AsyncGenerator<Uint8Array> {
  try {
    for (let next = await first; next.done !== true; next = await raceSignal(output.next(), context.signal))
      yield readRaw(route, next.value).data;
  } finally {
    context.abort(finished);
    void output.return?.()?.catch(() => {});
  }
}
