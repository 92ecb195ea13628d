/** Errors in OAuth 2 form (RFC 6749, section 5.2). */
import { Code, type ConnectError } from "@connectrpc/connect";
import { findDeclaration, toHttpStatus } from "../errors.ts";

/**
 * OAuth errors for reasons that declare none, by code; RFC 6749, sections 4.1.2.1 and 5.2, lists the names.
 */
const byCode: Partial<Readonly<Record<Code, string>>> = {
  [Code.InvalidArgument]: "invalid_request",
  [Code.FailedPrecondition]: "invalid_request",
  [Code.OutOfRange]: "invalid_request",
  [Code.NotFound]: "invalid_request",
  [Code.Unimplemented]: "invalid_request",
  [Code.Unauthenticated]: "invalid_client",
  [Code.PermissionDenied]: "access_denied",
  [Code.ResourceExhausted]: "temporarily_unavailable",
  [Code.Unavailable]: "temporarily_unavailable",
  [Code.DeadlineExceeded]: "temporarily_unavailable",
};

/** Returns the OAuth 2 name of an error. */
export function nameOAuthError(error: ConnectError): string {
  // An oversized body keeps its own error.
  if (error.code === Code.ResourceExhausted && toHttpStatus(error) !== 429) return "invalid_request";
  return findDeclaration(error)?.oauthError ?? byCode[error.code] ?? "server_error";
}

/**
 * Renders the error body. RFC 6749 allows printable ASCII without quotes and backslashes in a description.
 */
export function renderOAuthError(error: ConnectError): string {
  const description = error.rawMessage.replaceAll(/["\\]/g, "'").replaceAll(/[^ -~]/gu, "?");
  return JSON.stringify({ error: nameOAuthError(error), error_description: description });
}
