/** Translates failed key service calls to errors for the API server. */
import { Code, ConnectError } from "@connectrpc/connect";
import { CliError } from "../../src/cli/exit-codes.ts";
import { findCoreReason, type ReasonName, refuse, toConnectError } from "../../src/errors.ts";
import { keyServiceUnavailable } from "./reasons.ts";

/**
 * Translates any error of a key service call. A refusal keeps its reason and code; everything else becomes
 * KEY_SERVICE_UNAVAILABLE. Metadata and details are not passed on.
 */
export function explainCall(error: unknown, url: string): ConnectError {
  if (error instanceof ConnectError) {
    const reason = findCoreReason(error);
    if (reason !== undefined) return refuse(reason, `the key service refused the call: ${error.rawMessage}`);
    if (error.code === Code.DeadlineExceeded)
      return unavailable(`the key service at ${url} did not answer in time`);
    return unavailable(`the key service at ${url} cannot be reached: ${error.rawMessage}`);
  }
  // An operator's file: a token, a password or a log-in.
  if (error instanceof CliError) return unavailable(error.message);
  if (error instanceof Error && "code" in error && "path" in error)
    return unavailable(`${String(error.path)} cannot be read (${String(error.code)})`);
  return toConnectError(error);
}

/** The error for a key service that does not answer, or answers as something else. */
export function unavailable(message: string): ConnectError {
  return refuse(keyServiceUnavailable, message);
}

/** Reasons for which the key service refuses the key to everyone or to this user. */
const keyReasons: ReadonlySet<ReasonName | undefined> = new Set<ReasonName>([
  "KEY_NOT_FOUND",
  "KEY_STATE_INVALID",
  "KEY_USAGE_MISMATCH",
  "KEY_DAMAGED",
  "GRANT_MISSING",
]);

/** Whether an error is a definite answer about the key. */
export function isAboutKey(error: ConnectError): boolean {
  return keyReasons.has(findCoreReason(error));
}
