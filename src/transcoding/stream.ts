/** Runs a stream: from the request through the interceptors to the RPC, and back to an answer. */
import type { Message } from "@bufbuild/protobuf";
import { transformInvokeImplementation } from "@connectrpc/connect/protocol";
import { raceSignal } from "../calls/interrupt.ts";
import { finished } from "../calls/unary-call.ts";
import { bodyTooLarge, explainAbort, refuse, toConnectError } from "../errors.ts";
import { findMessageLimit } from "../message-limits/message-limit.ts";
import { requireJson, writeAnswer } from "./answer.ts";
import { readRequestMessages } from "./binding.ts";
import type { StreamLimits } from "./body.ts";
import { type Call, type CallContext, createContext, readForm } from "./call-context.ts";
import { emptyResponse, type RestRequest, type RestResponse } from "./http.ts";
import { chooseMediaType } from "./negotiation.ts";
import { requireQueryType } from "./query-method.ts";
import { answersRaw, endEventId, events, type StreamFormat, streamFormats } from "./rendering.ts";
import type { Route } from "./routes.ts";
import { answerStream } from "./stream-answer.ts";

/**
 * Runs a stream.
 *
 * @throws the error of a call that fails before its first message
 */
export async function runStream(found: Call): Promise<RestResponse> {
  const { match, request, setup } = found;
  const { route } = match;
  if (request.method === "QUERY") requireQueryType(route, request.headers);
  const call = { ...found, ...readForm(found) };
  const limits = findLimits(call);
  const isStreamed = route.spec.kind !== "client_streaming";
  const format = isStreamed ? chooseFormat(request, route) : requireJson(request.headers, route);
  // An EventSource reconnects after every end, and stops only on 204 (HTML, section 9.2).
  if (format === events && request.headers.get("last-event-id") === endEventId) return emptyResponse();
  const context = createContext(call);
  const { body: chunks, headers, meter } = request;
  const body = chunks && { chunks, headers, meter, signal: context.signal };
  const input = readRequestMessages(match, call.rawQuery, body, limits);
  if (isStreamed) return answerStream(call, context, input, format);
  try {
    const message = await raceSignal(invokeClientStream(call, context, input), context.signal);
    const { registry } = setup;
    return await writeAnswer(request, message, context, { route, registry, form: call.form });
  } catch (thrown) {
    throw explainAbort(toConnectError(thrown), context.signal);
  } finally {
    context.abort(finished);
  }
}

/**
 * Returns the body limits of a call, which apply to its query too.
 *
 * @throws BODY_TOO_LARGE
 */
function findLimits({ match, rawQuery, setup }: Call): StreamLimits {
  const maxBytes = findMessageLimit(match.route.spec.method, setup.limits.maxBytes, setup.profiles);
  if (rawQuery.length > maxBytes) throw bodyTooLarge(maxBytes);
  return { ...setup.limits, registry: setup.registry, maxBytes };
}

function chooseFormat({ headers }: RestRequest, route: Route): StreamFormat | undefined {
  if (answersRaw(route)) return undefined;
  return streamFormats.get(chooseMediaType(headers.get("accept"), [...streamFormats.keys()]));
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
