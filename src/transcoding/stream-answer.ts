/** Answers a streaming call: JSON lines, a JSON array, server-sent events, or raw bytes. */
import type { Message } from "@bufbuild/protobuf";
import { transformInvokeImplementation } from "@connectrpc/connect/protocol";
import { raceSignal } from "../calls/interrupt.ts";
import { finished } from "../calls/unary-call.ts";
import { explainAbort, toConnectError } from "../errors.ts";
import type { Call, CallContext } from "./call-context.ts";
import type { RestResponse } from "./http.ts";
import { type Renderer, renderError, type StreamFormat } from "./rendering.ts";

/**
 * Milliseconds to wait for the first message before sending the status, so that an early error keeps its own.
 */
const firstMessageGraceMs = 250;

/** Starts the answer. Its body continues while the RPC runs. */
export async function answerStream(
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
  const first = raceSignal(output.next(), context.signal);
  first.catch(() => {}); // The code below awaits it, unless the caller disconnects first.
  try {
    // An early error still gets its own HTTP status.
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
        : renderStream(output, first, renderer, format, context, call);
    return { status: 200, headers, body: pieces, trailers: context.responseTrailer };
  } catch (thrown) {
    const error = explainAbort(toConnectError(thrown), context.signal);
    context.abort(error);
    throw error;
  }
}

/** Waits without keeping the process alive. */
function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref());
}

async function* renderStream(
  output: AsyncIterator<Message>,
  first: Promise<IteratorResult<Message>>,
  renderer: Renderer,
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
      yield Buffer.from(format.message(renderer.toJsonText(next.value, { enumsAsNumbers }), index));
      index += 1;
    }
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
  renderer: Renderer,
  context: CallContext,
): AsyncGenerator<Uint8Array> {
  try {
    for (let next = await first; next.done !== true; next = await raceSignal(output.next(), context.signal))
      yield renderer.toRaw(next.value).data;
  } finally {
    context.abort(finished);
    void output.return?.()?.catch(() => {});
  }
}
