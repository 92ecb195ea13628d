/** The errors that the API server gets for failed calls to the key service. */
import { Code, ConnectError } from "@connectrpc/connect";
import { CliError } from "../../src/cli/exit-codes.ts";
import { findCoreReason, type ReasonName, refuse, toConnectError } from "../../src/errors.ts";
import { keyServiceUnavailable } from "./reasons.ts";

/**
 * Explains any error of a call to the key service: a refusal keeps its reason and its code, and everything else is
 * KEY_SERVICE_UNAVAILABLE. Metadata and details of the answer do not travel on.
 */
export function explainCall(error: unknown, url: string): ConnectError {
  if (error instanceof ConnectError) {
    const reason = findCoreReason(error);
    if (reason !== undefined) return refuse(reason, `the key service refuses: ${error.rawMessage}`);
    if (error.code === Code.DeadlineExceeded) return unavailable(`the key service at ${url} took too long`);
    return unavailable(`the key service at ${url} cannot be reached: ${error.rawMessage}`);
  }
  // A file of the operator: with a token, a password or a login.
  if (error instanceof CliError) return unavailable(error.message);
  if (error instanceof Error && "code" in error && "path" in error)
    return unavailable(`${String(error.path)} cannot be read (${String(error.code)})`);
  return toConnectError(error);
}

/** The error for a key service that did not answer, or not as one. */
export function unavailable(message: string): ConnectError {
  return refuse(keyServiceUnavailable, message);
}

/** Reasons for which the key service refuses the use of the key to everyone, or to this user. */
const keyReasons: ReadonlySet<ReasonName | undefined> = new Set<ReasonName>([
  "KEY_NOT_FOUND",
  "KEY_STATE_INVALID",
  "KEY_USAGE_MISMATCH",
  "KEY_DAMAGED",
  "GRANT_MISSING",
]);

/** Tells whether an error is a definite answer about the key. */
export function isAboutKey(error: ConnectError): boolean {
  return keyReasons.has(findCoreReason(error));
}
