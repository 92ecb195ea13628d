/**
 * The errors of connections. Node ends the process when an object emits "error" and nobody listens, and a peer can make
 * any object of its connection do so at any time. Libraries remove their listeners too early: connect-node does when a
 * response closes, before Node aborts its request.
 */
import { type EventEmitter, errorMonitor } from "node:events";

/** What objects of connections have raised, whoever caught it. */
const raised = new WeakSet<Error>();

/**
 * Keeps the errors of one object from ending the process, for its whole life. The listener calls it for every socket,
 * session, stream, request and response when it is made; nothing else needs such a listener.
 */
export function containErrors(emitter: EventEmitter): void {
  // Libraries that remove all listeners of "error" do not remove this one.
  emitter.on(errorMonitor, remember);
  emitter.on("error", ignore);
}

function remember(error: unknown): void {
  if (error instanceof Error) raised.add(error);
}

/** The other events of an object say that it has closed. */
function ignore(): void {}

/**
 * Tells whether an uncaught error belongs to one connection: an object of a connection raised it, or Node's HTTP code
 * threw it. Codes cannot tell: a database and files have the same.
 */
export function isConnectionError(error: unknown): boolean {
  return error instanceof Error && (raised.has(error) || wasThrownByHttp(error));
}

/** The modules of Node that speak HTTP. */
const httpFrame = /^\s*at (?:.*\()?node:(?:internal\/http2\/|_http_)/;

/** The modules of Node that make errors for them. */
const helperFrame = /\(?node:internal\/(?:assert|errors)[:/]/;

function wasThrownByHttp({ stack = "", message }: Error): boolean {
  // The message comes first, and a peer may have written it.
  const at = stack.indexOf(message);
  if (at < 0) return false;
  const frames = stack
    .slice(at + message.length)
    .split("\n")
    .slice(1);
  return httpFrame.test(frames.find((frame) => !helperFrame.test(frame)) ?? "");
}
