/** Streams that go both ways, which createForeignClient makes of one request each; here they have several. */
import {
  create,
  type DescMessage,
  type DescMethodBiDiStreaming,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import type { JsonRequest } from "./calls.ts";
import type { Driver } from "./drivers.ts";

/**
 * Clients that send streams, but none that goes both ways: HTTP/1.1 has no such, and the driver of grpc-js sends one
 * request to whatever answers with a stream.
 */
const oneWayDrivers = new Set([
  "@connectrpc/connect-node, Connect over HTTP/1.1",
  "@connectrpc/connect-node, Connect with GET over HTTP/1.1",
  "@connectrpc/connect-node, Connect with JSON over HTTP/1.1",
  "@connectrpc/connect-node, gRPC-Web over HTTP/1.1",
  "@connectrpc/connect-node, gRPC-Web with JSON",
  "@grpc/grpc-js, with what reflection says",
]);

/** Whether a client can send several requests on a stream that is answered with a stream. */
export function canExchange({ name, sendsStreams }: Driver): boolean {
  return sendsStreams && !oneWayDrivers.has(name);
}

/**
 * Sends all requests on one stream, without waiting, and gives as many answers.
 *
 * Drivers take all that they are to send at the start, so no request can depend on an answer here.
 */
export async function exchange<Input extends DescMessage, Output extends DescMessage>(
  driver: Driver,
  url: string,
  method: DescMethodBiDiStreaming<Input, Output>,
  requests: readonly MessageInitShape<Input>[],
): Promise<MessageShape<Output>[]> {
  const request = requests.map((one) => toJson(method.input, create(method.input, one)) as JsonRequest);
  const ending = new AbortController();
  const answers: MessageShape<Output>[] = [];
  try {
    const call = { service: method.parent.typeName, method: method.name, request };
    for await (const answer of driver.watch(url, call, ending.signal)) {
      answers.push(fromJson(method.output, answer as JsonValue));
      if (answers.length === requests.length) break;
    }
  } finally {
    ending.abort();
  }
  return answers;
}
