/** A call that another thread answers, in the thread that accepted it. */
import { type DescMethod, fromBinary, type Message } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { refuse } from "../../errors.ts";
import { type AnswerFrame, type CallFrame, encode } from "./frames.ts";
import { setHeaders } from "./header-pairs.ts";
import { Inbox, Outflow } from "./message-flow.ts";
import { packContext } from "./packed-context.ts";
import { packError, unpackError } from "./packed-error.ts";

/** Sends a frame of one call. */
export type SendCall = (frame: CallFrame) => void;

/** A forwarded call, and what it needs to send. It ends with its answer, by its context's signal, or by `fail`. */
export class ForwardedCall {
  /** The responses. A reader that leaves ends the call. */
  readonly responses: Inbox<Message>;
  readonly #id: number;
  readonly #method: DescMethod;
  readonly #context: HandlerContext;
  readonly #signal: AbortSignal;
  readonly #send: SendCall;
  readonly #onEnd: () => void;
  #requests: Outflow<Message> | undefined;
  #isOpen = true;

  /** @param onEnd runs when the call ends, for whatever reason */
  constructor(id: number, context: HandlerContext, send: SendCall, onEnd: () => void) {
    this.#id = id;
    this.#method = context.method;
    this.#context = context;
    this.#signal = context.signal;
    this.#send = send;
    this.#onEnd = onEnd;
    this.responses = new Inbox({
      onTaken: (count) => this.#post({ id, kind: "room", count }),
      onLeft: () => this.#abort(refuse("CALL_CANCELED", "the caller canceled the call")),
    });
  }

  /** Starts the call with its only request, or with a stream of requests. Never throws. */
  start(request: Message | AsyncIterable<Message>): void {
    if (this.#signal.aborted) return this.fail(this.#signal.reason);
    this.#signal.addEventListener("abort", this.#onAbort, { once: true });
    try {
      this.#sendStart(request);
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  /** Receives a frame of the answer. Never throws. */
  receive(frame: AnswerFrame): void {
    try {
      this.#take(frame);
    } catch (thrown) {
      // For example, a header that cannot be sent.
      this.#abort(thrown);
    }
  }

  /** Ends the call after the messages that have arrived. */
  fail(thrown: unknown): void {
    this.responses.end({ thrown });
    this.#close();
  }

  #take(frame: AnswerFrame): void {
    const { responseHeader, responseTrailer } = this.#context;
    switch (frame.kind) {
      case "room":
        return this.#requests?.addRoom(frame.count);
      case "stop":
        return this.#requests?.leave();
      case "message":
        setHeaders(responseHeader, frame.header);
        return this.responses.put(fromBinary(this.#method.output, frame.message));
      case "end":
      case "failure":
        setHeaders(responseHeader, frame.header);
        setHeaders(responseTrailer, frame.trailer);
        if (frame.kind === "failure") return this.fail(unpackError(frame.error));
        if (frame.message) this.responses.put(fromBinary(this.#method.output, frame.message));
        this.responses.end();
        return this.#close();
    }
  }

  #sendStart(request: Message | AsyncIterable<Message>): void {
    const { name, parent, input } = this.#method;
    const isStream = Symbol.asyncIterator in request;
    this.#post({
      id: this.#id,
      kind: "call",
      service: parent.typeName,
      method: name,
      message: isStream ? undefined : encode(input, request),
      context: packContext(this.#context),
    });
    if (isStream) void this.#sendRequests(request);
  }

  async #sendRequests(requests: AsyncIterable<Message>): Promise<void> {
    const id = this.#id;
    const { input } = this.#method;
    try {
      this.#requests = new Outflow(requests, (request) =>
        this.#post({ id, kind: "message", message: encode(input, request) }),
      );
      await this.#requests.run();
      this.#post({ id, kind: "end" });
    } catch (thrown) {
      this.#post({ id, kind: "failure", error: packError(thrown) });
    }
  }

  #onAbort = (): void => this.#abort(this.#signal.reason);

  #abort(thrown: unknown): void {
    this.responses.abort({ thrown });
    this.#post({ id: this.#id, kind: "abort", reason: packError(thrown) });
    this.#close();
  }

  #post(frame: CallFrame): void {
    if (this.#isOpen) this.#send(frame);
  }

  /** Leaves the requests as they are: returning them could close the connection before the answer is sent. */
  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#requests?.close();
    this.#onEnd();
  }
}
