/** The time that a call may take: the caller's deadline and the server's limit. */
import type { ConnectError } from "@connectrpc/connect";
import { refuse } from "../errors.ts";

/**
 * The longest delay that setTimeout accepts, 2^31 - 1 ms or about 24.8 days. A longer one would fire at once.
 */
const longestTimerMs = 2 ** 31 - 1;

/** The units of the gRPC protocol in milliseconds. */
const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * Returns the milliseconds that a caller allows for a call; undefined if it sets no limit.
 *
 * @param protocol a protocol with its own header; REST has none, so either counts
 * @throws TIMEOUT_INVALID
 */
export function readTimeout(headers: Pick<Headers, "get">, protocol = "rest"): number | undefined {
  const grpc = protocol.startsWith("connect") ? null : headers.get("grpc-timeout");
  const connect = protocol.startsWith("grpc") ? null : headers.get("connect-timeout-ms");
  if (grpc !== null) return parseGrpcTimeout(grpc);
  return connect === null ? undefined : parseConnectTimeout(connect);
}

/**
 * Parses "5S": at most 8 digits and a unit (gRPC over HTTP/2, "Timeout").
 *
 * @throws TIMEOUT_INVALID
 */
export function parseGrpcTimeout(text: string): number {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  if (digits === undefined || unit === undefined) {
    throw refuse(
      "TIMEOUT_INVALID",
      `grpc-timeout "${text}" is invalid; send 1 to 8 digits and a unit (H, M, S, m, u or n), such as 5S`,
    );
  }
  return Math.min(Number(digits) * (unitMs[unit] ?? 1), longestTimerMs);
}

/**
 * Parses "5000": at most 10 digits (Connect protocol, "Timeout").
 *
 * @throws TIMEOUT_INVALID
 */
function parseConnectTimeout(text: string): number {
  if (!/^\d{1,10}$/.test(text)) {
    throw refuse(
      "TIMEOUT_INVALID",
      `connect-timeout-ms "${text}" is invalid; send 1 to 10 digits, such as 5000`,
    );
  }
  return Math.min(Number(text), longestTimerMs);
}

export function deadlineExceeded(): ConnectError {
  return refuse("DEADLINE_EXCEEDED", "the call did not finish within its deadline");
}

/** Ends a call that exceeds the server's own limit. */
export function callTooSlow(limitMs: number): ConnectError {
  return refuse("DEADLINE_EXCEEDED", `the call did not finish within ${limitMs / 1000} seconds`);
}

/** Refuses a request whose body did not arrive in time. */
export function requestTooSlow(maxReceiveMs: number): Error {
  return refuse(
    "REQUEST_TOO_SLOW",
    `the request did not arrive completely within ${maxReceiveMs / 1000} seconds`,
  );
}
