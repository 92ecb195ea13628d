/** Calls the server and records each call for display. */

import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  getOption,
  type Message,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { createConnectTransport } from "@connectrpc/connect-web";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import type { Caller, CallOptions } from "./caller.ts";
import { Failure, toFailure } from "./failure.ts";
import { endRefusedSession, getSession } from "./session.ts";
import type { SnippetCall } from "./snippets/call.ts";
import { toHex } from "./values.ts";

/** One call as it was made. */
export interface CallRecord extends SnippetCall {
  /** Absent before the call, and for streams. */
  readonly answer?: Message;
  readonly failure?: Failure;
  /** Milliseconds from the request to the complete answer. */
  readonly durationMs?: number;
  /** Message sizes in binary protobuf encoding, as in gRPC. */
  readonly requestBytes: number;
  readonly answerBytes?: number;
}

const transport = createConnectTransport({
  baseUrl: "/",
  jsonOptions: { ignoreUnknownFields: true },
});

/** Describes a call before it is made. */
export function planCall<I extends DescMessage>(
  method: DescMethodUnary<I> | DescMethodServerStreaming<I>,
  init: MessageInitShape<I>,
  { token }: CallOptions = {},
): CallRecord {
  const request = create(method.input, init);
  return {
    method,
    request,
    token: token === undefined ? getSession()?.token : (token ?? undefined),
    requestBytes: toBinary(method.input, request).length,
  };
}

/** Idempotency keys of failed calls. The server may have made the change, so the same call again needs the same key. */
const failedKeys = new Map<string, string>();

/** Takes the key of an equal change that failed, or a new one: equal calls at the same time are different changes. */
function takeKey<I extends DescMessage>(method: DescMethodUnary<I>, init: MessageInitShape<I>) {
  const request = toHex(toBinary(method.input, create(method.input, init)));
  const change = `${method.parent.typeName}/${method.name} ${request}`;
  const key = failedKeys.get(change) ?? toHex(crypto.getRandomValues(new Uint8Array(16)));
  failedKeys.delete(change);
  return { change, key };
}

/** Makes a unary call and records it, even if it fails. */
async function makeCall<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  init: MessageInitShape<I>,
  options: CallOptions = {},
): Promise<{ readonly record: CallRecord; readonly answer?: MessageShape<O>; readonly failure?: Failure }> {
  const plan = planCall(method, init, options);
  const keyed = getOption(method, idempotency_key) ? takeKey(method, init) : undefined;
  const headers = { ...buildHeaders(plan), ...(keyed && { "idempotency-key": keyed.key }) };
  const startedAt = performance.now();
  try {
    const { message } = await transport.unary(method, undefined, undefined, headers, init);
    const answerBytes = toBinary(method.output, message).length;
    const record = { ...plan, answer: message, answerBytes, durationMs: performance.now() - startedAt };
    return { record, answer: message };
  } catch (thrown) {
    if (keyed) failedKeys.set(keyed.change, keyed.key);
    const failure = toFailure(thrown);
    endRefusedSession(plan.token, failure.reason);
    return { record: { ...plan, failure, durationMs: performance.now() - startedAt }, failure };
  }
}

/**
 * Creates a caller for the current user: a task of one user must not continue with the next user's token.
 *
 * @param record stores each call
 */
export function createCaller(record: (call: CallRecord) => void = () => {}): Caller {
  const session = getSession();
  return {
    async call(method, request, options) {
      if (session !== getSession())
        throw new Failure("SESSION_ENDED", "BROWSER", "You logged in or out while this was running.");
      const made = await makeCall(method, request, options);
      record(made.record);
      if (made.answer === undefined) throw made.failure;
      return made.answer;
    },
  };
}

/**
 * Makes a server-streaming call and yields its messages as they arrive.
 *
 * @throws Failure
 */
export async function* followCall<I extends DescMessage, O extends DescMessage>(
  method: DescMethodServerStreaming<I, O>,
  init: MessageInitShape<I>,
  signal?: AbortSignal,
): AsyncGenerator<MessageShape<O>> {
  const plan = planCall(method, init);
  try {
    const { message } = await transport.stream(method, signal, undefined, buildHeaders(plan), once(init));
    yield* message;
  } catch (thrown) {
    const failure = toFailure(thrown);
    endRefusedSession(plan.token, failure.reason);
    throw failure;
  }
}

async function* once<T>(value: T): AsyncGenerator<T> {
  yield value;
}

function buildHeaders({ token }: CallRecord): HeadersInit {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}
