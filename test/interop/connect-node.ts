/** A client of @connectrpc/connect-node with the generated code. */
import {
  type DescMessage,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  fromJson,
  type JsonValue,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { Members } from "../openapi/call-examples.ts";
import { type Call, findMethod } from "./calls.ts";

/**
 * Makes a unary or client-streaming call, with requests and answer in JSON.
 *
 * @throws ConnectError
 */
export async function callConnect(transport: Transport, call: Call): Promise<unknown> {
  const desc = findMethod(`${call.service}.${call.method}`);
  if (desc.methodKind === "unary") {
    const message = fromJson(desc.input, call.request as JsonValue);
    const answer = await transport.unary(
      desc as DescMethodUnary,
      undefined,
      undefined,
      call.headers,
      message,
    );
    return toJsonAnswer(desc.output, answer.message);
  }
  const [answer] = await Array.fromAsync(await openStream(transport, desc, call));
  if (answer === undefined) throw new Error(`${desc.name} has no answer`);
  return toJsonAnswer(desc.output, answer);
}

/** Makes a server-streaming call, until the signal ends it or the caller stops reading. */
export async function* watchConnect(
  transport: Transport,
  call: Call,
  signal?: AbortSignal,
): AsyncGenerator<unknown> {
  const desc = findMethod(`${call.service}.${call.method}`);
  const ending = new AbortController();
  const signals = [ending.signal, ...(signal ? [signal] : [])];
  try {
    for await (const message of await openStream(transport, desc, call, AbortSignal.any(signals)))
      yield toJsonAnswer(desc.output, message);
  } finally {
    ending.abort();
  }
}

async function openStream(
  transport: Transport,
  desc: DescMethod,
  call: Call,
  signal?: AbortSignal,
): Promise<AsyncIterable<Message>> {
  if (desc.methodKind === "unary") throw new Error(`${desc.name} has no stream`);
  const messages = readMessages(desc.input, call);
  const { message } = await transport.stream(
    desc as DescMethodStreaming,
    signal,
    undefined,
    call.headers,
    messages,
  );
  return message;
}

async function* readMessages(desc: DescMessage, { request }: Call): AsyncGenerator<Message> {
  const messages: readonly Members[] = Array.isArray(request) ? request : [request];
  for (const message of messages) yield fromJson(desc, message as JsonValue);
}

function toJsonAnswer(desc: DescMessage, message: Message): unknown {
  return toJson(desc, message, { alwaysEmitImplicit: true });
}
