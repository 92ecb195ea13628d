/** Headers for browsers: no type sniffing, no referrer, TLS only, and the other origins that may call. */
import type { IncomingHttpHeaders } from "node:http";
import type { NodeRequest, NodeResponse } from "./node-http.ts";
import { requestIdHeader } from "./request-ids.ts";

/** The policy for browsers. */
export interface BrowserPolicy {
  /** Other origins whose pages may call, such as https://console.example.com. */
  readonly corsOrigins: readonly string[];
  /** Whether the server speaks TLS itself. */
  readonly isTls: boolean;
}

/** Headers of answers that a page of another origin may read. */
const exposedHeaders = [
  "grpc-status",
  "grpc-message",
  "grpc-status-details-bin",
  "retry-after",
  requestIdHeader,
].join(", ");

/** Seconds that a browser may cache the answer to a preflight. */
const preflightSeconds = 7200;

/** Does not cover IP addresses, because browsers ignore Strict-Transport-Security for these. */
function isLocalhost(headers: IncomingHttpHeaders): boolean {
  const authority = headers[":authority"] ?? headers.host ?? "";
  return /^([^:]*\.)?localhost(:\d+)?$/i.test(String(authority));
}

/** Sets headers for browsers on every response. */
export interface BrowserHeaders {
  /** Sets the headers of a response before the request is handled. */
  set(req: NodeRequest, res: NodeResponse): void;
  /** Answers a preflight of an origin that may call. @returns false if the origin may not, or if there is none */
  answerPreflight(req: NodeRequest, res: NodeResponse): boolean;
}

/** Tells whether a request is a preflight (Fetch standard, "CORS-preflight request"). */
export function isPreflight({ method, headers }: NodeRequest): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/** Creates the headers of a policy. */
export function createBrowserHeaders({ corsOrigins, isTls }: BrowserPolicy): BrowserHeaders {
  const origins = new Set(corsOrigins);
  return {
    set({ headers }, res) {
      res.setHeader("x-content-type-options", "nosniff");
      res.setHeader("referrer-policy", "no-referrer");
      // RFC 6797; one year. On localhost it would apply to all ports, and so to servers without TLS.
      if (isTls && !isLocalhost(headers)) res.setHeader("strict-transport-security", "max-age=31536000");
      if (origins.size === 0) return;
      res.setHeader("vary", "origin");
      const { origin } = headers;
      if (origin === undefined || !origins.has(origin)) return;
      res.setHeader("access-control-allow-origin", origin);
      res.setHeader("access-control-expose-headers", exposedHeaders);
    },
    answerPreflight({ headers }, res) {
      if (headers.origin === undefined || !origins.has(headers.origin)) return false;
      res.setHeader("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE");
      // The server checks the headers of a page like those of any client.
      const wanted = headers["access-control-request-headers"];
      if (wanted !== undefined) res.setHeader("access-control-allow-headers", wanted);
      res.setHeader("access-control-max-age", String(preflightSeconds));
      res.writeHead(204).end();
      return true;
    },
  };
}
