/** Node's requests and responses, of HTTP/1.1 and HTTP/2 alike: the second are made to be used as the first. */
import type http from "node:http";
import type http2 from "node:http2";

/** A request; with the stream it came on if that is HTTP/2. */
export type NodeRequest = http.IncomingMessage & { readonly stream?: http2.ServerHttp2Stream };

/** A response. */
export type NodeResponse = http.ServerResponse;

/** Takes a request of either protocol. */
export type RequestHandler = (req: NodeRequest, res: NodeResponse) => void;

/** Takes an HTTP/2 stream before it becomes a request; true if it did. */
export type StreamHandler = (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => boolean;
