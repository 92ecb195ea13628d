/** Options shared by the HTTP/1.1 and HTTP/2 servers of a port. */
import type http from "node:http";
import type http2 from "node:http2";
import type { RestResponse } from "../transcoding/http.ts";
import type { Exchange } from "./exchange.ts";
import type { ServerLimits } from "./limits.ts";
import type { TlsOptions } from "./tls.ts";
import type { UnreadResponses } from "./unread-responses.ts";

/** A request of either HTTP version. */
export type NodeRequest = http.IncomingMessage | http2.Http2ServerRequest;

/** A response of either HTTP version. */
export type NodeResponse = http.ServerResponse | http2.Http2ServerResponse;

export interface ListenerOptions
  extends Pick<ServerLimits, "maxMetadataBytes" | "maxHeaderMs" | "maxWriteMs"> {
  /** Handles an exchange. Calls `toPage`, now or later, if a page should answer it. */
  readonly onExchange: (exchange: Exchange, toPage: () => void) => void;
  /** Answers a page request. Node makes HTTP/2 requests compatible with HTTP/1.1. */
  readonly onPage: (req: NodeRequest, res: NodeResponse) => void;
  /** Receives an error that left a request unanswered, which is a bug. */
  readonly onFault: (error: unknown, target: string | undefined, requestId?: string) => void;
  /** Counts bytes that are not an HTTP/1.1 request, and renders the answer to them. */
  readonly refuseBytes: (error: Error) => RestResponse;
  /**
   * Counts a connection until the returned function runs. If it returns undefined, the server closes the
   * connection.
   */
  readonly admitConnection: (address: string | undefined) => (() => void) | undefined;
  /** Counts a request that ended without an answer. If it returns false, the server closes the connection. */
  readonly countAbandoned: (address: string | undefined, connection: object) => boolean;
  /** Watches the bytes that peers leave unread. */
  readonly unread: UnreadResponses;
  /** Certificates and their keys. Without them, connections are plaintext. */
  readonly tls?: TlsOptions | undefined;
}
