/** OpenTelemetry attribute names for calls (semantic conventions for RPC). */
import { Code, type ConnectError } from "@connectrpc/connect";
import { nameCode } from "../../src/calls/code-name.ts";
import { findReason } from "../../src/errors.ts";

/** How a call ended. */
export interface CallStatus {
  /** The name of the gRPC code, such as OK or NOT_FOUND. */
  readonly status: string;
  /** Our reason, or the status if there is none; undefined for a successful call. */
  readonly reason: string | undefined;
  /** Whether the server failed, rather than its caller. */
  readonly isFault: boolean;
}

/** The codes that count as server errors in the gRPC semantic conventions. */
const faults: ReadonlySet<Code> = new Set([
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);

/** Describes how a call ended. */
export function describeFailure(error: ConnectError | undefined): CallStatus {
  if (error === undefined) return { status: "OK", reason: undefined, isFault: false };
  const status = nameCode(error.code);
  return { status, reason: findReason(error) ?? status, isFault: faults.has(error.code) };
}

/** The protocol name of a call. The conventions have none for REST. */
export function nameSystem(header: Headers): string {
  const type = header.get("content-type") ?? "";
  if (type.startsWith("application/grpc")) return "grpc";
  return header.has("connect-protocol-version") || /^application\/(connect\+|proto$)/.test(type)
    ? "connectrpc"
    : "rest";
}
