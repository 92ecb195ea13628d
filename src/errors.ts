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

/** One field of a request and what is wrong with it. */
export type FieldViolation = MessageInitShape<typeof BadRequest_FieldViolationSchema>;

/** The domain of our reasons (google.rpc.ErrorInfo.domain). */
export const errorDomain = "quantum-safe-playground";

/** Maximum number of violations in an error. */
const maxViolations = 20;

/**
 * Creates the error that refuses a call. The caller of this function throws it.
 *
 * Shortens the parts of the request that it repeats: metadata values and quoted texts to 100 characters, in all places.
 *
 * @param reason the name of a reason of the core, or the declaration of an extension's.
 * @param message what is wrong and what would be right, for a person; public values only.
 * @param metadata the variable parts of the message, for a program; public values only.
 * @param violations the invalid fields, in the names of the JSON form.
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
  // Connect sends the first two. The declaration goes with the error, because the core does not know it.
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
 * Creates the error of a reason. One that concerns the caller has no stack: nobody reads it, and to collect it takes
 * longer than to refuse the call, which a flood of calls would gain from.
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

/** RFC 9110, section 15.5.2: a 401 response says how to authenticate. RFC 6750, section 3.1, names the errors. */
function withChallenge(error: ConnectError, reason = ""): ConnectError {
  if (error.code !== Code.Unauthenticated || error.metadata.has("www-authenticate")) return error;
  const isAboutToken = reason.startsWith("TOKEN_") && reason !== "TOKEN_MISSING";
  error.metadata.set("www-authenticate", isAboutToken ? 'Bearer error="invalid_token"' : "Bearer");
  return error;
}

/**
 * Refuses a call that may succeed later: with google.rpc.RetryInfo, and over HTTP with Retry-After.
 *
 * @param retryMs milliseconds after which to try again.
 */
export function refuseForNow(
  reason: ReasonName,
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

/** Refuses one field: the message begins with its name. */
export function refuseField(
  field: string,
  description: string,
  reason: ReasonName | NamedReason = "FIELD_INVALID",
): ConnectError {
  return refuse(reason, `${field}: ${description}`, { field }, [{ field, description }]);
}

/** Refuses a call whose metadata is too large. */
export function metadataTooLarge(bytes: number, maxBytes: number): ConnectError {
  return refuse(
    "METADATA_TOO_LARGE",
    `the request's metadata has at least ${bytes} bytes; the limit is ${maxBytes}`,
    {
      bytes: String(bytes),
      maxBytes: String(maxBytes),
    },
  );
}

/** Ends a call because the server stops. */
export function serverStopping(): ConnectError {
  return refuseForNow("SHUTTING_DOWN", "the server is stopping; try again later", 1000);
}

/** Refuses a body, or one message of a stream, that is too large. */
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
    {
      limit,
      max: String(max),
    },
  );
}

/**
 * Refuses a call that a vendor's service has and this server does not.
 *
 * @param method its service and name, as "google.cloud.kms.v1.KeyManagementService/Encrypt"
 */
export function callUnsupported(method: string): ConnectError {
  return refuse(
    "CALL_UNSUPPORTED",
    `${method} is not supported; /reference of this server lists the calls that are`,
    {
      method,
    },
  );
}

/** Names what an error is about differently, in its sentence and its details. */
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

/** Creates an error again that another thread has taken apart. */
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

/** Finds a reason of the core in an error. */
export function findCoreReason(error: ConnectError): ReasonName | undefined {
  const infos = error.findDetails(ErrorInfoSchema).filter(({ domain }) => domain === errorDomain);
  return infos.map(({ reason }) => reason).find(isReasonName);
}

function isReasonName(name: string): name is ReasonName {
  return Object.hasOwn(reasons, name);
}

/** Finds the declaration of an extension's reason in an error of this process. */
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
 * Explains an error that ended a call by its signal: Connect's deadline, or Node's error for a connection that its
 * client closed. An error of the handler is more specific and does not change.
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

/** The HTTP status of each gRPC code, as in google/rpc/code.proto. */
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

/** Tells whether an error is a fault of the server, which the operator should see, and not of the caller. */
export function isServerFault(error: ConnectError): boolean {
  const reason = findDeclaration(error);
  if (reason === undefined) return [Code.Internal, Code.Unknown, Code.DataLoss].includes(error.code);
  return reason.isServerFault === true;
}

/** Finds the HTTP status of a failed REST call. */
export function toHttpStatus(error: ConnectError): number {
  return findDeclaration(error)?.httpStatus ?? httpStatuses[error.code] ?? 500;
}

/**
 * Converts any thrown value to a ConnectError. A value that is not a ConnectError is a bug or a fault of the machine.
 * The caller learns only that the call failed. The log gets the cause.
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
