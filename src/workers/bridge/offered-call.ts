/** A call of another thread, in the thread of its handler. */
import {
  type DescMessage,
  type DescMethod,
  fromBinary,
  type Message,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import type { ConnectError, ContextValues, HandlerContext, MethodImplSpec } from "@connectrpc/connect";
import { type AnswerFrame, type CallFrame, type CallStart, encode, type MessageBytes } from "./frames.ts";
import { type HeaderPairs, packHeaders } from "./header-pairs.ts";
import { Inbox, Outflow } from "./message-flow.ts";
import { unpackContext, unpackValues } from "./packed-context.ts";
import { packError, unpackError } from "./packed-error.ts";

/** Sends a frame of one call. */
export type SendAnswer = (frame: AnswerFrame) => void;

/** How the thread of the handlers treats the calls of others. */
export interface OfferOptions {
  /** Runs a handler and charges its work to the caller that the values name. */
  readonly runAs: <T>(values: ContextValues, run: () => T) => T;
  /** Converts a handler's error to a refusal; undefined if the error is unknown. The class of an error does not travel. */
  readonly explainFailure: (thrown: unknown) => ConnectError | undefined;
}

type Response = MessageInitShape<DescMessage>;

/** Shared by all calls, because an abort without a reason creates an error with a stack. */
const finished = new Error("the call has ended");

/** A call that a handler answers. It ends with its answer, or by `abort`. */
export class OfferedCall {
  readonly #id: number;
  readonly #start: CallStart;
  readonly #send: SendAnswer;
  readonly #options: OfferOptions;
  readonly #onEnd: () => void;
  readonly #controller = new AbortController();
  readonly #values: ContextValues;
  readonly #unpacked: ReturnType<typeof unpackContext>;
  readonly #requests: Inbox<Message>;
  #method: DescMethod | undefined;
  #responses: Outflow<Response> | undefined;
  #isHeaderSent = false;
  #isOpen = true;

  /** @param onEnd runs when the call ends, for whatever reason */
  constructor(id: number, start: CallStart, send: SendAnswer, options: OfferOptions, onEnd: () => void) {
    this.#id = id;
    this.#start = start;
    this.#send = send;
    this.#options = options;
    this.#onEnd = onEnd;
    this.#values = unpackValues(start.context);
    this.#unpacked = unpackContext(start.context, this.#values);
    this.#requests = new Inbox({
      onTaken: (count) => this.#post({ id, kind: "room", count }),
      onLeft: () => this.#post({ id, kind: "stop" }),
    });
  }

  /** Runs the handler and sends its answer. Never fails. */
  run(spec: MethodImplSpec | undefined): Promise<void> {
    return this.#options.runAs(this.#values, () => this.#answer(spec));
  }

  receive(frame: CallFrame): void {
    switch (frame.kind) {
      case "message":
        return this.#putRequest(frame.message);
      case "end":
        return this.#requests.end();
      case "failure":
        return this.#requests.end({ thrown: unpackError(frame.error) });
      case "room":
        return this.#responses?.addRoom(frame.count);
      case "abort":
        return this.abort(unpackError(frame.reason));
    }
  }

  /** Ends the call early. Its handler may still run, but its answer no longer counts. */
  abort(reason: Error): void {
    if (!this.#isOpen) return;
    this.#close(reason);
    this.#requests.abort({ thrown: reason });
    this.#options.runAs(this.#values, () => this.#responses?.leave());
  }

  async #answer(spec: MethodImplSpec | undefined): Promise<void> {
    const id = this.#id;
    try {
      if (spec === undefined) throw new Error(`no thread has ${this.#start.service}.${this.#start.method}`);
      this.#method = spec.method;
      const message = await this.#handle(spec);
      this.#post({ id, kind: "end", message, ...this.#headers() });
    } catch (thrown) {
      const error = packError(this.#explain(thrown));
      this.#post({ id, kind: "failure", error, ...this.#headers() });
    }
    this.#close(finished);
    this.#requests.abort();
  }

  /** @returns the response, unless the responses are a stream */
  async #handle(spec: MethodImplSpec): Promise<MessageBytes | undefined> {
    const context = this.#createContext(spec.method);
    switch (spec.kind) {
      case "unary":
        return encode(spec.method.output, await spec.impl(this.#readRequest(spec.method), context));
      case "client_streaming":
        return encode(spec.method.output, await spec.impl(this.#requests, context));
      case "server_streaming":
        await this.#stream(spec.method, spec.impl(this.#readRequest(spec.method), context));
        return undefined;
      case "bidi_streaming":
        await this.#stream(spec.method, spec.impl(this.#requests, context));
        return undefined;
    }
  }

  async #stream({ output }: DescMethod, responses: AsyncIterable<Response>): Promise<void> {
    this.#responses = new Outflow(responses, (response) => {
      const header = this.#isHeaderSent ? [] : packHeaders(this.#unpacked.responseHeader);
      this.#isHeaderSent = true;
      this.#post({ id: this.#id, kind: "message", message: encode(output, response), header });
    });
    await this.#responses.run();
  }

  #createContext(method: DescMethod): HandlerContext {
    return { ...this.#unpacked, method, service: method.parent, signal: this.#controller.signal };
  }

  #readRequest({ input }: DescMethod): Message {
    if (this.#start.message === undefined) throw new Error("the call has no message");
    return fromBinary(input, this.#start.message);
  }

  #putRequest(bytes: MessageBytes): void {
    if (this.#method === undefined) return;
    try {
      this.#requests.put(fromBinary(this.#method.input, bytes));
    } catch (thrown) {
      this.#requests.end({ thrown });
    }
  }

  #explain(thrown: unknown): unknown {
    try {
      return this.#options.explainFailure(thrown) ?? thrown;
    } catch (fault) {
      return fault;
    }
  }

  #headers(): { readonly header: HeaderPairs; readonly trailer: HeaderPairs } {
    const { responseHeader, responseTrailer } = this.#unpacked;
    const header = this.#isHeaderSent ? [] : packHeaders(responseHeader);
    return { header, trailer: packHeaders(responseTrailer) };
  }

  #post(frame: AnswerFrame): void {
    if (this.#isOpen) this.#send(frame);
  }

  #close(reason: Error): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#onEnd();
    this.#controller.abort(reason);
  }
}
