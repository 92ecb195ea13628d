/** A client of @connectrpc/connect-node with the generated code. */
import { type DescMethod, fromJson, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { type CallOptions, createClient, type Transport } from "@connectrpc/connect";
import { streamOf } from "../support/streams.ts";
import { type Call, findMethod } from "./calls.ts";

type Caller<Answer> = (request: unknown, options: CallOptions) => Answer;

/** Finds the call of a client, and builds its request. */
function prepare<Answer>(transport: Transport, { service, method, request, headers }: Call) {
  const desc = findMethod(`${service}.${method}`);
  const client = createClient(desc.parent, transport) as unknown as Record<string, Caller<Answer>>;
  const messages = [request].flat().map((message) => fromJson(desc.input, message as JsonValue));
  const isStream = ["client_streaming", "bidi_streaming"].includes(desc.methodKind);
  const sent = isStream ? streamOf(...messages) : messages[0];
  return {
    desc,
    call: (options: CallOptions) => (client[desc.localName] as Caller<Answer>)(sent, { headers, ...options }),
  };
}

/**
 * Makes a unary or client-streaming call, with requests and answer in JSON.
 *
 * @throws ConnectError
 */
export async function callConnect(transport: Transport, toMake: Call): Promise<unknown> {
  const { desc, call } = prepare<Promise<Message>>(transport, toMake);
  return toJsonAnswer(desc, await call({}));
}

/** Makes a server-streaming call, until the signal ends it or the caller stops reading. */
export async function* watchConnect(
  transport: Transport,
  toMake: Call,
  signal?: AbortSignal,
): AsyncGenerator<unknown> {
  const { desc, call } = prepare<AsyncIterable<Message>>(transport, toMake);
  const ending = new AbortController();
  const signals = [ending.signal, ...(signal ? [signal] : [])];
  try {
    for await (const message of call({ signal: AbortSignal.any(signals) })) yield toJsonAnswer(desc, message);
  } finally {
    ending.abort();
  }
}

function toJsonAnswer({ output }: DescMethod, message: Message): unknown {
  return toJson(output, message, { alwaysEmitImplicit: true });
}
