/**
 * Every way to refuse a caller. This is the only file that creates a ConnectError.
 *
 * A refusal is the same over gRPC, gRPC-Web, Connect and REST: a status code, a sentence for a person, and a
 * google.rpc.ErrorInfo whose `reason` a program can switch on.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type BadRequest_FieldViolationSchema,
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "#gen/google/rpc/error_details_pb.ts";
import type { NamedReason, Reason } from "./errors/reason.ts";
import { type ReasonName, reasons } from "./errors/reasons.ts";
import { excerpt, maxEchoCharacters, shortenSentence } from "./errors/shorten.ts";

export { type ReasonName, reasons };

/** A request field and what is wrong with it. */
export type FieldViolation = MessageInitShape<typeof BadRequest_FieldViolationSchema>;

/** The domain of our reasons (google.rpc.ErrorInfo.domain). */
export const errorDomain = "quantum-safe-playground";

/** Maximum number of violations in an error. */
const maxViolations = 20;

/**
 * Creates the error that refuses a call; the caller throws it.
 *
 * Shortens the parts of the request that it quotes: metadata values and quoted texts are cut to 100
 * characters, wherever they occur.
 *
 * @param reason the name of a core reason, or the declaration of an extension's reason
 * @param message what is wrong and what would be right, for a person; public values only
 * @param metadata the variable parts of the message, for a program; public values only
 * @param violations the invalid fields, by their JSON names
 */
export function refuse(
  reason: ReasonName | NamedReason,
  message: string,
  metadata: Record<string, string> = {},
  violations: readonly FieldViolation[] = [],
): ConnectError {
  const long = Object.values(metadata).filter((value) => value.length > maxEchoCharacters);
  const shorten = (sentence: string): string => shortenSentence(sentence, long);
  const shortMetadata = Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => [name, excerpt(value).toWellFormed()]),
  );
  const [name, declaration]: [string, Reason] =
    typeof reason === "string" ? [reason, reasons[reason]] : [reason.name, reason];
  const error = createError(declaration, shorten(message));
  const value = { reason: name, domain: errorDomain, metadata: shortMetadata };
  // Connect sends the first two. The declaration travels with the error, because the core does not know it.
  const detail = { desc: ErrorInfoSchema, value, ...(typeof reason !== "string" && { declaration: reason }) };
  error.details.push(detail);
  if (violations.length > 0) {
    const fieldViolations = violations
      .slice(0, maxViolations)
      .map(({ field = "", description = "", ...more }) => ({
        ...more,
        field: excerpt(field).toWellFormed(),
        description: shorten(description),
      }));
    error.details.push({ desc: BadRequestSchema, value: { fieldViolations } });
  }
  return withChallenge(error, name);
}

/**
 * Creates the error for a reason. If it concerns the caller, it has no stack: nobody reads it, and collecting
 * it takes longer than refusing the call, which would help a flood of calls.
 */
function createError(reason: Reason, message: string): ConnectError {
  if (reason.isServerFault) return new ConnectError(message, reason.code);
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new ConnectError(message, reason.code);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/**
 * RFC 9110, section 15.5.2: a 401 response says how to authenticate. RFC 6750, section 3.1, names the errors.
 */
function withChallenge(error: ConnectError, reason = ""): ConnectError {
  if (error.code !== Code.Unauthenticated || error.metadata.has("www-authenticate")) return error;
  const isAboutToken = reason.startsWith("TOKEN_") && reason !== "TOKEN_MISSING";
  error.metadata.set("www-authenticate", isAboutToken ? 'Bearer error="invalid_token"' : "Bearer");
  return error;
}

/**
 * Refuses a call that may succeed later: with google.rpc.RetryInfo, and over HTTP with Retry-After.
 *
 * @param retryMs milliseconds to wait before retrying
 */
export function refuseForNow(
  reason: ReasonName | NamedReason,
  message: string,
  retryMs: number,
  metadata: Record<string, string> = {},
): ConnectError {
  const error = refuse(reason, message, metadata);
  error.details.push({ desc: RetryInfoSchema, value: { retryDelay: durationFromMs(Math.ceil(retryMs)) } });
  // RFC 9110, section 10.2.3: whole seconds.
  error.metadata.set("retry-after", String(Math.ceil(retryMs / 1000)));
  return error;
}

/** Refuses one field; the message begins with its name. */
export function refuseField(
  field: string,
  description: string,
  reason: ReasonName | NamedReason = "FIELD_INVALID",
): ConnectError {
  return refuse(reason, `${field}: ${description}`, { field }, [{ field, description }]);
}

/** Refuses several fields, or one; the message lists them. */
export function refuseFields(
  violations: readonly { readonly field: string; readonly description: string }[],
): ConnectError {
  const message = violations.map(({ field, description }) => `${excerpt(field)}: ${description}`).join("; ");
  const field = violations.map((violation) => violation.field).join(",");
  return refuse("FIELD_INVALID", message, { field }, violations);
}

/** Refuses a call whose metadata is too large. */
export function metadataTooLarge(bytes: number, maxBytes: number): ConnectError {
  return refuse(
    "METADATA_TOO_LARGE",
    `the request metadata has at least ${bytes} bytes; the limit is ${maxBytes}`,
    { bytes: String(bytes), maxBytes: String(maxBytes) },
  );
}

/** Ends a call because the server is stopping. */
export function serverStopping(): ConnectError {
  return refuseForNow("SHUTTING_DOWN", "the server is stopping; try again later", 1000);
}

/** Refuses an oversized body or stream message. */
export function bodyTooLarge(maxBytes: number): ConnectError {
  return refuse("BODY_TOO_LARGE", `the message is larger than the limit of ${maxBytes} bytes for this call`, {
    maxBytes: String(maxBytes),
  });
}

/** Refuses a message with too many parts, before the server builds it. */
export function messageTooComplex(limit: string, max: number): ConnectError {
  return refuse(
    "MESSAGE_TOO_COMPLEX",
    `the message has more than ${max} ${limit}; send several smaller messages`,
    { limit, max: String(max) },
  );
}

/**
 * Refuses a call that a vendor's service offers and this server does not.
 *
 * @param method its service and name, such as "google.cloud.kms.v1.KeyManagementService/Encrypt"
 */
export function callUnsupported(method: string): ConnectError {
  return refuse(
    "CALL_UNSUPPORTED",
    `${method} is not supported; see /reference on this server for the supported calls`,
    { method },
  );
}

/** Renames the subject of an error, in its sentence and its details. */
export function renameSubject(error: ConnectError, from: string, to: string): ConnectError {
  const rename = (text: string): string => text.replaceAll(from, to);
  const renamed = new ConnectError(
    rename(error.rawMessage),
    error.code,
    error.metadata,
    undefined,
    error.cause,
  );
  renamed.details = error.details.map((detail) => {
    if (!("desc" in detail) || detail.desc !== ErrorInfoSchema) return detail;
    const { metadata = {}, ...info } = detail.value as MessageInitShape<typeof ErrorInfoSchema>;
    const entries = Object.entries(metadata).map(([name, value]) => [name, rename(value)]);
    return { ...detail, value: { ...info, metadata: Object.fromEntries(entries) } };
  });
  return renamed;
}

/** Rebuilds an error that another thread has serialized. */
export function restoreError(
  parts: Pick<ConnectError, "rawMessage" | "code" | "metadata" | "details">,
): ConnectError {
  const error = new ConnectError(parts.rawMessage, parts.code, parts.metadata);
  error.details = parts.details;
  return error;
}

/** Finds the name of our reason in an error; undefined if the error is not ours. */
export function findReason(error: ConnectError): string | undefined {
  return findCoreReason(error) ?? findExtensionReason(error)?.name;
}

/** Finds a core reason in an error. */
export function findCoreReason(error: ConnectError): ReasonName | undefined {
  const infos = error.findDetails(ErrorInfoSchema).filter(({ domain }) => domain === errorDomain);
  return infos.map(({ reason }) => reason).find(isReasonName);
}

function isReasonName(name: string): name is ReasonName {
  return Object.hasOwn(reasons, name);
}

/** Finds the declaration of an extension's reason in an error from this process. */
function findExtensionReason({ details }: ConnectError): NamedReason | undefined {
  return details.find(isDeclared)?.declaration;
}

function isDeclared<T extends object>(detail: T): detail is T & { readonly declaration: NamedReason } {
  return "declaration" in detail;
}

/** Finds the declaration of our reason in an error; undefined if the error is not ours. */
export function findDeclaration(error: ConnectError): Reason | undefined {
  const name = findCoreReason(error);
  return name === undefined ? findExtensionReason(error) : reasons[name];
}

/**
 * Explains an error that ended a call by its signal: Connect's deadline, or Node's error for a connection
 * that the client closed. A handler's own error is more specific and does not change.
 */
export function explainAbort(error: ConnectError, signal: AbortSignal): ConnectError {
  if (error !== signal.reason || findReason(error) !== undefined) return error;
  switch (error.code) {
    case Code.DeadlineExceeded:
      return refuse("DEADLINE_EXCEEDED", "the call did not finish within its deadline");
    case Code.Canceled:
    case Code.Aborted:
    case Code.Internal:
      return refuse("CALL_CANCELED", "the caller canceled the call");
    default:
      return error;
  }
}

/** The HTTP status of each gRPC code, from google/rpc/code.proto. */
const httpStatuses: Readonly<Record<Code, number>> = {
  [Code.Canceled]: 499,
  [Code.Unknown]: 500,
  [Code.InvalidArgument]: 400,
  [Code.DeadlineExceeded]: 504,
  [Code.NotFound]: 404,
  [Code.AlreadyExists]: 409,
  [Code.PermissionDenied]: 403,
  [Code.ResourceExhausted]: 429,
  [Code.FailedPrecondition]: 400,
  [Code.Aborted]: 409,
  [Code.OutOfRange]: 400,
  [Code.Unimplemented]: 501,
  [Code.Internal]: 500,
  [Code.Unavailable]: 503,
  [Code.DataLoss]: 500,
  [Code.Unauthenticated]: 401,
};

/** Returns whether an error is a server fault, which the operator should see, rather than the caller's. */
export function isServerFault(error: ConnectError): boolean {
  const reason = findDeclaration(error);
  if (reason === undefined) return [Code.Internal, Code.Unknown, Code.DataLoss].includes(error.code);
  return reason.isServerFault === true;
}

/** Returns the HTTP status of a failed REST call. */
export function toHttpStatus(error: ConnectError): number {
  return findDeclaration(error)?.httpStatus ?? httpStatuses[error.code] ?? 500;
}

/**
 * Converts any thrown value to a ConnectError. Anything else than a ConnectError is a bug or a machine fault:
 * the caller sees only that the call failed, and the log gets the cause.
 */
export function toConnectError(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return withChallenge(thrown);
  if (thrown instanceof Error && thrown.name === "AbortError") {
    return refuse("CALL_CANCELED", "the call was canceled");
  }
  const error = refuse("INTERNAL", "internal error");
  error.cause = thrown;
  return error;
}
