/**
 * Contains connection errors. Node ends the process when an object emits "error" without a listener, and a
 * peer can cause that on any object of its connection at any time. Libraries remove their listeners too
 * early: connect-node does so when a response closes, before Node aborts its request.
 */
import { type EventEmitter, errorMonitor } from "node:events";

/** Errors raised by connection objects, whether or not they were handled. */
const raised = new WeakSet<Error>();

/**
 * Keeps the errors of one object from ending the process, for the object's whole life. The listener calls it
 * for every new socket, session, stream, request and response; nothing else needs such a listener.
 */
export function containErrors(emitter: EventEmitter): void {
  // Survives libraries that remove all "error" listeners.
  emitter.on(errorMonitor, remember);
  emitter.on("error", ignore);
}

function remember(error: unknown): void {
  if (error instanceof Error) raised.add(error);
}

/** Other events report that the object has closed. */
function ignore(): void {}

/**
 * Returns whether an uncaught error belongs to one connection: a connection object raised it, or Node's HTTP
 * code threw it. Error codes cannot decide: databases and files use the same ones.
 */
export function isConnectionError(error: unknown): boolean {
  return error instanceof Error && (raised.has(error) || wasThrownByHttp(error));
}

/** Node's HTTP modules. */
const httpFrame = /^\s*at (?:.*\()?node:(?:internal\/http2\/|_http_)/;

/** Node modules that create errors for them. */
const helperFrame = /\(?node:internal\/(?:assert|errors)[:/]/;

function wasThrownByHttp({ stack = "", message }: Error): boolean {
  // The stack begins with the message, which a peer may control.
  const at = stack.indexOf(message);
  if (at < 0) return false;
  const frames = stack
    .slice(at + message.length)
    .split("\n")
    .slice(1);
  return httpFrame.test(frames.find((frame) => !helperFrame.test(frame)) ?? "");
}
