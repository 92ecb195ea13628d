/** Serves REST calls without connections: the transcoder, and the server code for unary calls. */
import { PassThrough, Readable, type Writable } from "node:stream";
import { createRegistry } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { CallValues } from "../../src/calls/call-values.ts";
import { RunningCalls } from "../../src/calls/unary-call.ts";
import { findMessageLimit } from "../../src/message-limits/message-limit.ts";
import { runCall } from "../../src/server/call.ts";
import { type Answer, Exchange } from "../../src/server/exchange.ts";
import { RestCall } from "../../src/server/protocols/rest.ts";
import { createRequestIds } from "../../src/server/request-ids.ts";
import { createRpcs, isUnary } from "../../src/server/rpcs.ts";
import { collectFiles, errorFiles } from "../../src/transcoding/descriptors.ts";
import { type RestRequest, type RestResponse, splitTarget } from "../../src/transcoding/http.ts";
import {
  createTranscoder,
  type Transcoder,
  type TranscoderOptions,
} from "../../src/transcoding/transcoder.ts";

/** Transcoder options and the time limit of a call. */
export interface RestOptions extends TranscoderOptions {
  readonly maxCallMs?: number;
}

/** The REST side of a server. */
export interface RestServer extends Omit<Transcoder, "handle"> {
  handle(request: RestRequest): Promise<RestResponse>;
}

export function createRestServer(options: RestOptions): RestServer {
  const { services, interceptors = [], maxBytes, structure, profiles, onError = () => {} } = options;
  const transcoder = createTranscoder(options);
  const files = services.map(({ service }) => service.file);
  const rpcs = createRpcs({
    specs: services.flatMap(({ methods }) => Object.values(methods)),
    interceptors,
    registry: createRegistry(...collectFiles([...errorFiles, ...files])),
    limitsOf: (method) => ({ maxBytes: findMessageLimit(method, maxBytes, profiles), structure }),
  });
  const running = new RunningCalls(options.shutdownSignal);
  const requestIds = { ...createRequestIds(), identify: () => "the-request" };
  return {
    ...transcoder,
    async handle(request) {
      const found = transcoder.find(request.method, splitTarget(request.target));
      const method = found?.match.route.spec.method;
      const rpc = method && rpcs.get(`/${method.parent.typeName}/${method.name}`);
      if (found === undefined || rpc === undefined || !isUnary(rpc)) return transcoder.handle(request, found);
      const exchange = new MemoryExchange(request);
      const report = (error: ConnectError): void => onError(error, request, method);
      const values = request.contextValues ?? new CallValues();
      await runCall(
        {
          running,
          maxReceiveMs: options.maxReceiveMs,
          maxCallMs: options.maxCallMs ?? Number.POSITIVE_INFINITY,
          refused: (_rpc, _header, error) => report(error),
          onError: report,
        },
        {
          exchange,
          form: { protocol: "rest", codec: "json", contentType: "application/json" },
          protocol: new RestCall({ transcoder, requestIds }, found, values),
          rpc,
          values,
        },
      );
      return exchange.response;
    },
  };
}

/** An exchange in memory. */
class MemoryExchange extends Exchange {
  readonly httpVersion = "1.1";
  readonly url: string;
  readonly hasBody: boolean;
  #response: RestResponse | undefined;
  readonly #sink: Writable;

  constructor({ method, target, headers, body, signal }: RestRequest) {
    const sink = new PassThrough();
    super(Readable.from(body ?? [], { objectMode: false }), sink, {
      method,
      target,
      headers: Object.fromEntries(headers),
      rawHeaders: [...headers].flat(),
      peer: undefined,
      socket: undefined,
    });
    this.#sink = sink;
    this.url = target;
    this.hasBody = body !== undefined;
    this.source.on("error", () => this.close());
    if (signal.aborted) this.close();
    signal.addEventListener("abort", () => this.close(), { once: true });
  }

  /**
   * The answer.
   *
   * @throws Error if the caller disconnected before it was written
   */
  get response(): RestResponse {
    if (this.#response === undefined) throw new Error("the caller left");
    return this.#response;
  }

  pendingBytes(): number {
    return 0;
  }
  drop(): void {
    this.close();
  }
  release(): void {}
  get isAnswered(): boolean {
    return this.#response !== undefined;
  }
  protected awaitsAnswer(): boolean {
    return !this.isAnswered && !this.isClosed;
  }
  protected isWritten(): boolean {
    return this.isAnswered;
  }
  protected isBodyCut(): boolean {
    return false;
  }
  protected sendContinue(): void {}
  protected sendHead(): void {}
  protected sendWhole({ status, headers }: Answer, body: Uint8Array): void {
    this.source.destroy();
    this.#response = { status, headers, body: this.method === "HEAD" ? new Uint8Array() : body };
  }
  protected endBodyOfAnswer(): void {}
  protected sink(): Writable {
    return this.#sink;
  }
}
