/** Headers for browsers: no type sniffing, no referrer, TLS only, and the other origins that may call. */
import type { IncomingHttpHeaders } from "node:http";
import { CallHeaders } from "../calls/call-headers.ts";
import type { Exchange } from "./exchange.ts";
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

/** The headers of every answer for browsers. */
export interface BrowserHeaders {
  /** Returns the headers of the answer to a request. */
  headersOf(headers: IncomingHttpHeaders): Readonly<Record<string, string>>;
  /** Answers a preflight of an origin that may call. @returns false if the origin may not, or if there is none */
  answerPreflight(exchange: Exchange): boolean;
}

/** Tells whether a request is a preflight (Fetch standard, "CORS-preflight request"). */
export function isPreflight({ method, headers }: Pick<Exchange, "method" | "headers">): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/** Creates the headers of a policy. */
export function createBrowserHeaders({ corsOrigins, isTls }: BrowserPolicy): BrowserHeaders {
  const origins = new Set(corsOrigins);
  const everywhere = { "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" };
  // RFC 6797; one year. On localhost it would apply to all ports, and so to servers without TLS.
  const overTls = { ...everywhere, "strict-transport-security": "max-age=31536000" };
  return {
    headersOf(headers) {
      const common = isTls && !isLocalhost(headers) ? overTls : everywhere;
      if (origins.size === 0) return common;
      const { origin } = headers;
      const varying = { ...common, vary: "origin" };
      if (origin === undefined || !origins.has(origin)) return varying;
      return {
        ...varying,
        "access-control-allow-origin": origin,
        "access-control-expose-headers": exposedHeaders,
      };
    },
    answerPreflight(exchange) {
      const { origin, "access-control-request-headers": wanted } = exchange.headers;
      if (origin === undefined || !origins.has(origin)) return false;
      const headers = new CallHeaders();
      headers.set("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE, QUERY");
      // The server checks the headers of a page like those of any client.
      if (wanted !== undefined) headers.set("access-control-allow-headers", wanted);
      headers.set("access-control-max-age", String(preflightSeconds));
      exchange.send({ status: 204, headers });
      return true;
    },
  };
}
