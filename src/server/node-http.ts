/** Node's requests and responses of HTTP/1.1 and HTTP/2. Node makes the latter compatible with the former. */
import type http from "node:http";
import type http2 from "node:http2";

/** A request; in HTTP/2 with its stream. */
export type NodeRequest = http.IncomingMessage & { readonly stream?: http2.ServerHttp2Stream };

/** A response. */
export type NodeResponse = http.ServerResponse;

/** Handles a request of either protocol. */
export type RequestHandler = (req: NodeRequest, res: NodeResponse) => void;

/**
 * May handle an HTTP/2 stream before it becomes a request.
 *
 * @param rawHeaders all names and values in turn
 * @returns true if it did
 */
export type StreamHandler = (
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  rawHeaders: readonly string[],
) => boolean;
