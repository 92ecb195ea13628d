/**
 * The service of Connect's conformance suite, from its descriptors. connectrpc/conformance/v1/service.proto describes
 * each RPC.
 *
 * The repository has no part of the suite and therefore no generated code. The interfaces below are the part of its
 * messages that the service reads.
 */
import {
  create,
  type DescMessage,
  type Message,
  type MessageInitShape,
  type Registry,
} from "@bufbuild/protobuf";
import { type Any, anyPack } from "@bufbuild/protobuf/wkt";
import {
  type Code,
  ConnectError,
  createServiceImplSpec,
  type HandlerContext,
  type ServiceImplSpec,
} from "@connectrpc/connect";

export const packageName = "connectrpc.conformance.v1";

interface Header {
  readonly name: string;
  readonly value: readonly string[];
}

interface ErrorDefinition {
  readonly code: Code;
  readonly message?: string;
  readonly details: readonly Any[];
}

/** UnaryResponseDefinition and StreamResponseDefinition; each has one part of the fields. */
interface ResponseDefinition {
  readonly responseHeaders: readonly Header[];
  readonly responseTrailers: readonly Header[];
  readonly responseDelayMs: number;
  readonly response?:
    | { readonly case: "responseData"; readonly value: Uint8Array }
    | { readonly case: "error"; readonly value: ErrorDefinition }
    | { readonly case: undefined };
  readonly responseData: readonly Uint8Array[];
  readonly error?: ErrorDefinition;
}

/** All requests; only BidiStreamRequest has `fullDuplex`. */
interface SuiteRequest extends Message {
  readonly responseDefinition?: ResponseDefinition;
  readonly fullDuplex?: boolean;
}

/** Implements ConformanceService except for Unimplemented, as the suite requires. */
export function conformanceService(registry: Registry): ServiceImplSpec {
  const service = registry.getService(`${packageName}.ConformanceService`);
  if (service === undefined) throw new Error(`the descriptors do not have ${packageName}.ConformanceService`);
  // Only the descriptors know the types of the requests; the interfaces above describe their content.
  const answerUnary = (request: SuiteRequest, context: HandlerContext) =>
    answerOnce(registry, [request], context);
  const implementation = {
    unary: answerUnary,
    idempotentUnary: answerUnary,
    clientStream: async (requests: AsyncIterable<SuiteRequest>, context: HandlerContext) =>
      answerOnce(registry, await Array.fromAsync(requests), context),
    serverStream: (request: SuiteRequest, context: HandlerContext) =>
      answerStream(registry, [request], context),
    bidiStream: (requests: AsyncIterable<SuiteRequest>, context: HandlerContext) =>
      answerStream(registry, requests, context),
  };
  return createServiceImplSpec(service, implementation as never);
}

async function answerOnce(
  registry: Registry,
  requests: readonly SuiteRequest[],
  context: HandlerContext,
): Promise<Message> {
  const definition = requests[0]?.responseDefinition;
  setMetadata(definition, context);
  await pause(definition?.responseDelayMs);
  const requestInfo = describeRequest(registry, requests, context);
  const response = definition?.response;
  if (response?.case === "error") throw makeError(registry, response.value, requestInfo);
  const data = response?.case === "responseData" ? response.value : undefined;
  return createMessage(context.method.output, { payload: { data, requestInfo } });
}

/** Answers each request at once if the first one asks for it (`fullDuplex`), otherwise all at the end. */
async function* answerStream(
  registry: Registry,
  requests: AsyncIterable<SuiteRequest> | Iterable<SuiteRequest>,
  context: HandlerContext,
): AsyncGenerator<Message> {
  const received: SuiteRequest[] = [];
  let definition: ResponseDefinition | undefined;
  let sent = 0;
  const answer = async (data: Uint8Array, requestInfo?: RequestInfo): Promise<Message> => {
    await pause(definition?.responseDelayMs);
    sent += 1;
    return createMessage(context.method.output, { payload: { data, requestInfo } });
  };
  // The first answer has all request information; later answers only have what is new.
  const describeAll = (): RequestInfo | undefined =>
    sent === 0 ? describeRequest(registry, received, context) : undefined;

  for await (const request of requests) {
    if (received.push(request) === 1) {
      definition = request.responseDefinition;
      setMetadata(definition, context);
    }
    if (received[0]?.fullDuplex !== true) continue;
    const data = definition?.responseData[sent];
    if (data === undefined) break;
    yield await answer(data, describeAll() ?? { requests: pack(registry, [request]) });
  }
  for (const data of definition?.responseData.slice(sent) ?? []) yield await answer(data, describeAll());
  if (definition?.error !== undefined) throw makeError(registry, definition.error, describeAll());
}

/** ConformancePayload.RequestInfo: what a request looked like to its handler. */
interface RequestInfo {
  readonly requests: readonly Any[];
  readonly requestHeaders?: readonly Header[];
  readonly timeoutMs?: bigint;
  readonly connectGetInfo?: { readonly queryParams: readonly Header[] };
}

function describeRequest(
  registry: Registry,
  requests: readonly Message[],
  context: HandlerContext,
): RequestInfo {
  const timeoutMs = context.timeoutMs();
  return {
    requests: pack(registry, requests),
    requestHeaders: listHeaders(context.requestHeader),
    ...(timeoutMs !== undefined && { timeoutMs: BigInt(Math.round(timeoutMs)) }),
    ...(context.requestMethod === "GET" && {
      connectGetInfo: { queryParams: listHeaders(new URL(context.url).searchParams) },
    }),
  };
}

function listHeaders(entries: Iterable<[string, string]>): Header[] {
  return Array.from(entries, ([name, value]) => ({ name, value: [value] }));
}

function pack(registry: Registry, messages: readonly Message[]): Any[] {
  return messages.map((message) => anyPack(getMessage(registry, message.$typeName), message));
}

function makeError(
  registry: Registry,
  definition: ErrorDefinition,
  requestInfo: RequestInfo | undefined,
): ConnectError {
  const infoType = getMessage(registry, `${packageName}.ConformancePayload.RequestInfo`);
  const info =
    requestInfo === undefined ? [] : [anyPack(infoType, createMessage(infoType, { ...requestInfo }))];
  const error = new ConnectError(definition.message ?? "", definition.code);
  for (const { typeUrl, value } of [...definition.details, ...info]) {
    error.details.push({ type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1), value });
  }
  return error;
}

function setMetadata(definition: ResponseDefinition | undefined, context: HandlerContext): void {
  append(context.responseHeader, definition?.responseHeaders);
  append(context.responseTrailer, definition?.responseTrailers);
}

function append(target: Headers, headers: readonly Header[] = []): void {
  for (const { name, value } of headers) for (const item of value) target.append(name, item);
}

/** Ignores the signal of the call: ending the call in time is up to the server. */
function pause(milliseconds = 0): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Creates a message of a type that only its descriptor knows; `create` checks the fields. */
export function createMessage(type: DescMessage, fields: Record<string, unknown>): Message {
  return create(type, fields as MessageInitShape<DescMessage>);
}

/** @throws Error if the descriptors do not have the message */
export function getMessage(registry: Registry, typeName: string): DescMessage {
  const type = registry.getMessage(typeName);
  if (type === undefined) throw new Error(`the descriptors do not have ${typeName}`);
  return type;
}
