/** Response headers for browsers (nosniff, no referrer, HSTS) and CORS for other origins that may call. */
import type { IncomingHttpHeaders } from "node:http";
import { CallHeaders } from "../calls/call-headers.ts";
import type { Exchange } from "./exchange.ts";

/** Settings that affect browsers. */
export interface BrowserPolicy {
  /** Other origins whose pages may call, such as https://console.example.com (CORS). */
  readonly corsOrigins: readonly string[];
  /** Whether the server terminates TLS itself. */
  readonly isTls: boolean;
}

/** Seconds that a browser may cache a preflight response. */
const preflightSeconds = 7200;

/** Ignores IP addresses, because browsers ignore Strict-Transport-Security for them. */
function isLocalhost(headers: IncomingHttpHeaders): boolean {
  const authority = headers[":authority"] ?? headers.host ?? "";
  return /^([^:]*\.)?localhost(:\d+)?$/i.test(String(authority));
}

export type BrowserHeaders = ReturnType<typeof createBrowserHeaders>;

/** Returns whether a request is a preflight (Fetch standard, "CORS-preflight request"). */
export function isPreflight({ method, headers }: Pick<Exchange, "method" | "headers">): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

export function createBrowserHeaders({ corsOrigins, isTls }: BrowserPolicy) {
  const origins = new Set(corsOrigins);
  const everywhere = { "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" };
  // RFC 6797; one year. On localhost, HSTS would apply to all ports, including servers without TLS.
  const overTls = { ...everywhere, "strict-transport-security": "max-age=31536000" };
  return {
    /** Returns the headers for the response to a request. */
    headersOf(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
      const common = isTls && !isLocalhost(headers) ? overTls : everywhere;
      if (origins.size === 0) return common;
      const { origin } = headers;
      const varying = { ...common, vary: "origin" };
      if (origin === undefined || !origins.has(origin)) return varying;
      return {
        ...varying,
        "access-control-allow-origin": origin,
        // The wildcard works because pages cannot send credentials (Fetch standard, "CORS protocol").
        "access-control-expose-headers": "*",
      };
    },
    /**
     * Answers a CORS preflight from an origin that may call.
     *
     * @returns false if the origin may not call, or if the request names none
     */
    answerPreflight(exchange: Exchange): boolean {
      const { origin, "access-control-request-headers": wanted } = exchange.headers;
      if (origin === undefined || !origins.has(origin)) return false;
      const headers = new CallHeaders();
      headers.set("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE, QUERY");
      // The server checks a page's headers like any other client's.
      if (wanted !== undefined) headers.set("access-control-allow-headers", wanted);
      headers.set("access-control-max-age", String(preflightSeconds));
      void exchange.send({ status: 204, headers });
      return true;
    },
  };
}
