/** What browsers are told: not to guess, not to pass addresses on, to stay with TLS, and which other origins may call. */
import type { IncomingHttpHeaders } from "node:http";
import type { NodeRequest, NodeResponse } from "./node-http.ts";

/** What browsers are to do. */
export interface BrowserPolicy {
  /** Origins beside our own whose pages may call, such as https://console.example.com. */
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
  "x-request-id",
].join(", ");

/** Seconds that a browser may remember what it was allowed. */
const preflightSeconds = 7200;

/** Browsers pass over it for addresses by themselves. */
function isLocalhost(headers: IncomingHttpHeaders): boolean {
  const authority = headers[":authority"] ?? headers.host ?? "";
  return /^([^:]*\.)?localhost(:\d+)?$/i.test(String(authority));
}

/** What browsers are told in the headers of every response. */
export interface BrowserHeaders {
  /** Sets the headers of a response, before anything else is known of it. */
  set(req: NodeRequest, res: NodeResponse): void;
  /** Answers a preflight of an origin that may call. @returns false if the origin may not, or there are none */
  answerPreflight(req: NodeRequest, res: NodeResponse): boolean;
}

/** Tells whether a browser asks if a page may make a call (Fetch standard, "CORS-preflight request"). */
export function isPreflight({ method, headers }: NodeRequest): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/** Makes what sets these headers. */
export function createBrowserHeaders({ corsOrigins, isTls }: BrowserPolicy): BrowserHeaders {
  const origins = new Set(corsOrigins);
  return {
    set({ headers }, res) {
      res.setHeader("x-content-type-options", "nosniff");
      res.setHeader("referrer-policy", "no-referrer");
      // RFC 6797; a year. It would hold for all ports of localhost, and so for servers without TLS.
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
      // Whatever a page sends is checked like everything else that is sent.
      const wanted = headers["access-control-request-headers"];
      if (wanted !== undefined) res.setHeader("access-control-allow-headers", wanted);
      res.setHeader("access-control-max-age", String(preflightSeconds));
      res.writeHead(204).end();
      return true;
    },
  };
}
