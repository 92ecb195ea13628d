/** The options that the servers of a port share. */
import type http from "node:http";
import type http2 from "node:http2";
import type { RestResponse } from "../transcoding/http.ts";
import type { Exchange } from "./exchange.ts";
import type { TlsOptions } from "./tls.ts";
import type { UnreadResponses } from "./unread-responses.ts";

/** A request of either version. */
export type NodeRequest = http.IncomingMessage | http2.Http2ServerRequest;

/** A response of either version. */
export type NodeResponse = http.ServerResponse | http2.Http2ServerResponse;

/** The settings and handlers of a listener. */
export interface ListenerOptions {
  /** Takes an exchange. It calls `toPage`, at once or later, if a page is to answer it. */
  readonly onExchange: (exchange: Exchange, toPage: () => void) => void;
  /** Answers the request for a page. Node makes requests of HTTP/2 compatible with those of HTTP/1.1. */
  readonly onPage: (req: NodeRequest, res: NodeResponse) => void;
  /** Receives an error that left a request without an answer, which is a bug. */
  readonly onFault: (error: unknown, target: string | undefined, requestId?: string) => void;
  /** Renders the answer to bytes that are not an HTTP/1.1 request. */
  readonly renderFailure: (error: Error) => RestResponse;
  /** Bytes of metadata that calls may have. Node itself stops reading only well beyond this limit. */
  readonly maxMetadataBytes: number;
  /** Milliseconds for the headers of a request to arrive. */
  readonly maxHeaderMs: number;
  /** Milliseconds that a peer may read nothing of what waits for it. */
  readonly maxWriteMs: number;
  /**
   * Counts a connection until the returned function runs. The server closes a connection on arrival if there is none.
   */
  readonly admitConnection: (address: string | undefined) => (() => void) | undefined;
  /** Counts a request that ended without an answer. The server closes its connection if the result is false. */
  readonly countAbandoned: (address: string | undefined) => boolean;
  /** Watches the bytes that the peers of connections do not read. */
  readonly unread: UnreadResponses;
  /** Certificates and their keys. Without them connections are plaintext. */
  readonly tls?: TlsOptions | undefined;
}
