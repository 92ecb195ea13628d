/** REST: the transcoder reads messages and writes answers. */
import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import { CallHeaders } from "../../calls/call-headers.ts";
import { readTimeout } from "../../calls/timeout.ts";
import type { UnaryCall } from "../../calls/unary-call.ts";
import type { FoundRoute } from "../../transcoding/call-context.ts";
import type { RestResponse } from "../../transcoding/http.ts";
import type { Transcoder } from "../../transcoding/transcoder.ts";
import { UnaryTranscoding } from "../../transcoding/unary.ts";
import { meterKey } from "../byte-budget.ts";
import type { Answer, Exchange } from "../exchange.ts";
import { mediaTypeMissing } from "../request-head.ts";
import { type RequestIds, requestIdHeader } from "../request-ids.ts";
import type { ArrivingMessage, MessageBytes, UnaryProtocol } from "./unary.ts";

/** What REST requests need from the server. */
export interface RestDeps {
  readonly transcoder: Transcoder;
  readonly requestIds: RequestIds;
}

/** A unary call over REST. */
export class RestCall implements UnaryProtocol {
  readonly #deps: RestDeps;
  readonly #route: FoundRoute;
  readonly #values: ContextValues;
  #transcoding: UnaryTranscoding | undefined;

  constructor(deps: RestDeps, route: FoundRoute, values: ContextValues) {
    this.#deps = deps;
    this.#route = route;
    this.#values = values;
  }

  readHead({ exchange: { method, hasBody }, rpc }: ArrivingMessage, headers: Headers): number | undefined {
    this.#transcoding = new UnaryTranscoding({ method, headers, hasBody }, this.#route, rpc);
    return readTimeout(headers);
  }

  /** HTTP/2 does not announce a body, so a missing media type can be detected only once the body begins. */
  check(piece: Buffer, size: number, _pieces: unknown, { exchange }: ArrivingMessage): void {
    const isTyped = exchange.httpVersion === "1.1" || Boolean(exchange.headers["content-type"]);
    if (piece.length > 0 && !isTyped) throw mediaTypeMissing();
    this.#read.checkSize(size);
  }

  readCompression(): Compression | undefined {
    return this.#read.isGzip ? compressionGzip : undefined;
  }

  unpack(bytes: Buffer, compression: Compression | undefined): MessageBytes {
    return { bytes, compression: bytes.length === 0 ? undefined : compression };
  }

  decode(bytes: Uint8Array): Message {
    return this.#read.read(bytes);
  }

  async write(message: Message, call: UnaryCall, { exchange }: ArrivingMessage): Promise<Answer> {
    return this.#mark(await this.#read.write(message, call), exchange);
  }

  writeFailure(error: ConnectError, _call: UnaryCall, { exchange }: ArrivingMessage): Answer {
    return this.#mark(this.#deps.transcoder.renderFailure(error, exchange), exchange);
  }

  get #read(): UnaryTranscoding {
    if (this.#transcoding === undefined) throw new Error("the head of this call is not read");
    return this.#transcoding;
  }

  #mark(response: RestResponse, exchange: Exchange): Answer {
    return markAnswer(this.#deps, response, exchange, this.#values);
  }
}

/**
 * Answers a REST request that is not a unary call.
 *
 * @param route undefined if there is none; the transcoder then refuses the request
 */
export async function serveRest(
  deps: RestDeps,
  exchange: Exchange,
  route: FoundRoute | undefined,
  contextValues: ContextValues,
): Promise<void> {
  const { method, target, headers, hasBody } = exchange;
  const request = {
    method,
    target,
    headers: new CallHeaders(headers),
    body: hasBody ? readTyped(exchange) : undefined,
    meter: contextValues.get(meterKey),
    contextValues,
    get signal() {
      return exchange.signal;
    },
  };
  const response = await deps.transcoder.handle(request, route);
  await exchange.send(markAnswer(deps, response, exchange, contextValues));
}

/**
 * Also runs for requests refused before their call began. An error may be shared by calls and carry a
 * different ID.
 */
function markAnswer(
  { requestIds }: RestDeps,
  response: RestResponse,
  { headers }: Exchange,
  values: ContextValues,
): Answer {
  response.headers.set(requestIdHeader, requestIds.identify(values, headers[requestIdHeader]));
  return response;
}

async function* readTyped(exchange: Exchange): AsyncGenerator<Uint8Array> {
  const hasType = Boolean(exchange.headers["content-type"]);
  for await (const piece of exchange.pieces()) {
    if (!hasType) throw mediaTypeMissing();
    yield piece;
  }
}
