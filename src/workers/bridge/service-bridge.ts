/**
 * Lets one thread answer the calls that all threads accept.
 *
 * A service that keeps state in memory has one home thread. Every other thread has implementations that forward each
 * call through a MessagePort, after the interceptors of its own server. The home runs the handler and not the
 * interceptors. One port carries any number of calls at once.
 */
import type { MessagePort } from "node:worker_threads";
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import type { HandlerContext, MethodImpl, MethodImplSpec, ServiceImplSpec } from "@connectrpc/connect";
import { createMethodImplSpec } from "@connectrpc/connect";
import { refuse, serverStopping } from "../../errors.ts";
import { ForwardedCall } from "./forwarded-call.ts";
import { type AnswerFrame, type CallFrame, listTransfers } from "./frames.ts";
import { Inbox } from "./message-flow.ts";
import { OfferedCall, type OfferOptions } from "./offered-call.ts";

/** The home's side of a port. */
export interface Offer {
  /** Calls of the port that have not ended. */
  readonly callsInProgress: number;
  /** Ends the calls in progress with SHUTTING_DOWN, and closes the port. */
  stop(): void;
}

/** Answers the calls that another thread forwards, until its port closes. */
export function offerServices(
  services: readonly ServiceImplSpec[],
  port: MessagePort,
  options: OfferOptions,
): Offer {
  const calls = new Map<number, OfferedCall>();
  const specs = new Map<string, MethodImplSpec>();
  for (const { methods } of services)
    for (const spec of Object.values(methods)) specs.set(nameMethod(spec.method), spec);
  const send = (frame: AnswerFrame): void => port.postMessage(frame, listTransfers(frame));
  const abortAll = (reason: Error): void => {
    for (const call of calls.values()) call.abort(reason);
  };
  port.on("message", (frame: CallFrame) => {
    const { id } = frame;
    // Frames of calls that have ended may still arrive.
    if (frame.kind !== "call") return calls.get(id)?.receive(frame);
    const call = new OfferedCall(id, frame, send, options, () => calls.delete(id));
    calls.set(id, call);
    void call.run(specs.get(`${frame.service}/${frame.method}`));
  });
  port.on("close", () => abortAll(refuse("CALL_CANCELED", "the connection of the call has closed")));
  return {
    get callsInProgress() {
      return calls.size;
    },
    stop: () => {
      abortAll(serverStopping());
      port.close();
    },
  };
}

/** Forwards calls. */
export interface Forwarder {
  /** The implementations. Without an open port they refuse each call with SHUTTING_DOWN. */
  readonly services: readonly ServiceImplSpec[];
  /** Calls that have not ended. */
  readonly callsInProgress: number;
  /**
   * Forwards from now on through a port to the home. Call it as soon as the port arrives, because a port that closes
   * before does not say so. Calls in progress keep their port, and end with SHUTTING_DOWN if it closes.
   */
  connect(port: MessagePort): void;
}

/** Creates implementations that forward each call to the thread that has the services. */
export function forwardServices(services: readonly DescService[]): Forwarder {
  const links = new Set<Link>();
  let current: Link | undefined;
  const start: StartCall = (request, context) => current?.start(request, context) ?? refused();
  return {
    services: services.map((service) => ({
      service,
      methods: Object.fromEntries(
        service.methods.map((method) => [method.localName, forwardMethod(method, start)]),
      ),
    })),
    get callsInProgress() {
      return [...links].reduce((sum, link) => sum + link.calls.size, 0);
    },
    connect(port) {
      const link = new Link(port, () => {
        links.delete(link);
        if (current === link) current = undefined;
      });
      links.add(link);
      current = link;
    },
  };
}

/** One request, or a stream of them. */
type Request = Message | AsyncIterable<Message>;

/** Starts a call. Errors reach the reader of its responses. */
type StartCall = (request: Request, context: HandlerContext) => Inbox<Message>;

/** The forwarding side of a port. */
class Link {
  readonly calls = new Map<number, ForwardedCall>();
  readonly #port: MessagePort;
  #lastId = 0;

  constructor(port: MessagePort, onClose: () => void) {
    this.#port = port;
    port.on("message", (frame: AnswerFrame) => this.calls.get(frame.id)?.receive(frame));
    port.on("close", () => {
      onClose();
      for (const call of this.calls.values()) call.fail(serverStopping());
    });
  }

  start(request: Request, context: HandlerContext): Inbox<Message> {
    this.#lastId += 1;
    const id = this.#lastId;
    const call = new ForwardedCall(id, context, this.#send, () => this.calls.delete(id));
    this.calls.set(id, call);
    call.start(request);
    return call.responses;
  }

  #send = (frame: CallFrame): void => this.#port.postMessage(frame, listTransfers(frame));
}

/** The responses of a call that no thread answers. */
function refused(): Inbox<Message> {
  const responses = new Inbox<Message>();
  responses.end({ thrown: serverStopping() });
  return responses;
}

/** The type of a spec depends on the kind of its method; all kinds start in the same way. */
function forwardMethod(method: DescMethod, start: StartCall): MethodImplSpec {
  const isStream = method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming";
  const impl = isStream ? start : (...call: Parameters<StartCall>) => readOnly(start(...call));
  // The lines above have chosen an implementation of the method's kind.
  return createMethodImplSpec(method, impl as MethodImpl<DescMethod>);
}

async function readOnly(responses: Inbox<Message>): Promise<Message> {
  const first = await responses.next();
  if (first.done === true) throw new Error("the call ended without an answer");
  return first.value;
}

function nameMethod({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}
