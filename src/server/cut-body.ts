/** Tells a request body that was cut off from one that is complete. */
import { refuse } from "../errors.ts";
import type { NodeRequest } from "./node-http.ts";

/**
 * Makes the body of an HTTP/2 request end with an error if its stream was reset, or its connection closed, before its
 * end, or if it lacks bytes that it announced. Only END_STREAM ends a body, and a content-length must be true
 * (RFC 9113, sections 8.1 and 8.1.1), but Node ends a body that was cut in the same way. Without this, a part of a
 * message would be signed or stored as the whole. HTTP/1.1 reports such bodies itself.
 */
export function refuseCutBody(req: NodeRequest): void {
  const { stream } = req;
  if (stream === undefined) return;
  const iterate = req[Symbol.asyncIterator].bind(req);
  req[Symbol.asyncIterator] = async function* (): AsyncGenerator<unknown, undefined> {
    const announced = req.headers["content-length"];
    let received = 0;
    for await (const chunk of { [Symbol.asyncIterator]: iterate }) {
      received += chunk.length;
      yield chunk;
    }
    const isShort = announced !== undefined && received !== Number(announced);
    // Node sets the first before it ends the body.
    if (stream.aborted || isShort)
      throw refuse("CALL_CANCELED", "the caller disconnected before its request was complete");
    return undefined;
  };
}
