/**
 * Every way in which a caller can be refused. The only file that makes a ConnectError.
 *
 * A refusal travels over gRPC, gRPC-Web, Connect and REST alike: a status code, a sentence for a person,
 * and a google.rpc.ErrorInfo whose `reason` a program can switch on.
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

/** Says under which code a reason travels, and its HTTP status where google/rpc/code.proto is too coarse. */
interface Reason {
  readonly code: Code;
  readonly httpStatus?: number;
}

/** Every reason a caller can receive. A reason once shipped keeps its meaning. */
export const reasons = {
  // What a request can have wrong before a call is found for it.
  ROUTE_NOT_FOUND: { code: Code.NotFound },
  METHOD_UNKNOWN: { code: Code.Unimplemented },
  METHOD_NOT_ALLOWED: { code: Code.Unimplemented, httpStatus: 405 },
  RPC_NOT_FOUND: { code: Code.Unimplemented, httpStatus: 404 },
  SERVICE_UNKNOWN: { code: Code.NotFound },
  TARGET_INVALID: { code: Code.InvalidArgument },
  HTTP_INVALID: { code: Code.InvalidArgument },
  HOST_NOT_ALLOWED: { code: Code.PermissionDenied },
  CROSS_SITE_REFUSED: { code: Code.PermissionDenied },
  METADATA_TOO_LARGE: { code: Code.ResourceExhausted, httpStatus: 431 },
  REQUEST_TOO_SLOW: { code: Code.DeadlineExceeded, httpStatus: 408 },
  // What its headers and its body can have wrong.
  NOT_ACCEPTABLE: { code: Code.InvalidArgument, httpStatus: 406 },
  MEDIA_TYPE_UNSUPPORTED: { code: Code.InvalidArgument, httpStatus: 415 },
  ENCODING_UNSUPPORTED: { code: Code.Unimplemented, httpStatus: 415 },
  ENCODING_INVALID: { code: Code.InvalidArgument },
  ENCODING_MISSING: { code: Code.Internal },
  BODY_TOO_LARGE: { code: Code.ResourceExhausted, httpStatus: 413 },
  BODY_UNEXPECTED: { code: Code.InvalidArgument },
  BODY_INCOMPLETE: { code: Code.InvalidArgument },
  TIMEOUT_INVALID: { code: Code.InvalidArgument },
  // What its message can have wrong.
  MESSAGE_MALFORMED: { code: Code.InvalidArgument },
  MESSAGE_TOO_COMPLEX: { code: Code.InvalidArgument },
  JSON_INVALID: { code: Code.InvalidArgument },
  PARAMETER_UNKNOWN: { code: Code.InvalidArgument },
  PARAMETER_DUPLICATE: { code: Code.InvalidArgument },
  FIELD_CONTRADICTION: { code: Code.InvalidArgument },
  FIELD_INVALID: { code: Code.InvalidArgument },
  KEY_INVALID: { code: Code.InvalidArgument },
  LENGTH_INVALID: { code: Code.InvalidArgument },
  IDEMPOTENCY_KEY_INVALID: { code: Code.InvalidArgument },
  IDEMPOTENCY_KEY_REUSED: { code: Code.AlreadyExists },
  // What is the matter with a key.
  KEY_NOT_FOUND: { code: Code.NotFound },
  KEY_STATE_INVALID: { code: Code.FailedPrecondition },
  KEY_USAGE_MISMATCH: { code: Code.FailedPrecondition },
  BATCH_TOO_LARGE: { code: Code.InvalidArgument },
  KEY_DAMAGED: { code: Code.DataLoss },
  // What is the matter with what other services keep.
  RECORD_DAMAGED: { code: Code.DataLoss },
  WALLET_NOT_FOUND: { code: Code.NotFound },
  TOKEN_NOT_FOUND: { code: Code.NotFound },
  OWNER_MISMATCH: { code: Code.FailedPrecondition },
  PROPOSAL_NOT_FOUND: { code: Code.NotFound },
  PROPOSAL_EXECUTED: { code: Code.FailedPrecondition },
  PROPOSAL_EXPIRED: { code: Code.FailedPrecondition },
  THRESHOLD_NOT_REACHED: { code: Code.FailedPrecondition },
  SIGNER_UNKNOWN: { code: Code.PermissionDenied },
  ALREADY_SIGNED: { code: Code.AlreadyExists },
  SIGNATURE_MISSING: { code: Code.FailedPrecondition },
  SIGNATURE_INVALID: { code: Code.InvalidArgument },
  VALIDATOR_MISSING: { code: Code.FailedPrecondition },
  VALIDATOR_NOT_FOUND: { code: Code.NotFound },
  DEVICE_NOT_FOUND: { code: Code.NotFound },
  DEVICE_NOT_SIMULATED: { code: Code.FailedPrecondition },
  VENDOR_MISSING: { code: Code.FailedPrecondition },
  TUNNEL_NOT_FOUND: { code: Code.NotFound },
  ADDRESS_POOL_EMPTY: { code: Code.ResourceExhausted },
  SESSION_MISSING: { code: Code.FailedPrecondition },
  REKEY_NEEDED: { code: Code.FailedPrecondition },
  HANDSHAKE_REPLAYED: { code: Code.AlreadyExists },
  HANDSHAKE_LIMIT_REACHED: { code: Code.ResourceExhausted },
  PACKET_INVALID: { code: Code.InvalidArgument },
  PACKET_REFLECTED: { code: Code.InvalidArgument },
  PACKET_REPLAYED: { code: Code.AlreadyExists },
  // What is the matter with the store.
  STORE_UNAVAILABLE: { code: Code.Unavailable },
  STORE_FULL: { code: Code.ResourceExhausted },
  STORE_DAMAGED: { code: Code.DataLoss },
  MASTER_KEY_MISSING: { code: Code.Unavailable },
  // Who the caller is.
  TOKEN_MISSING: { code: Code.Unauthenticated },
  TOKEN_MALFORMED: { code: Code.Unauthenticated },
  TOKEN_KEY_UNKNOWN: { code: Code.Unauthenticated },
  TOKEN_SIGNATURE_INVALID: { code: Code.Unauthenticated },
  TOKEN_EXPIRED: { code: Code.Unauthenticated },
  TOKEN_REVOKED: { code: Code.Unauthenticated },
  LOGIN_FAILED: { code: Code.Unauthenticated },
  ROLE_MISSING: { code: Code.PermissionDenied },
  // How much the caller, or all callers together, ask for.
  LOGIN_LIMITED: { code: Code.ResourceExhausted },
  RATE_LIMITED: { code: Code.ResourceExhausted },
  CONCURRENCY_LIMITED: { code: Code.ResourceExhausted },
  BUFFER_LIMITED: { code: Code.ResourceExhausted },
  SERVER_BUSY: { code: Code.ResourceExhausted },
  QUOTA_EXCEEDED: { code: Code.ResourceExhausted },
  // How the call ended.
  DEADLINE_EXCEEDED: { code: Code.DeadlineExceeded },
  CALL_CANCELED: { code: Code.Canceled },
  SHUTTING_DOWN: { code: Code.Unavailable },
  NOT_IMPLEMENTED: { code: Code.Unimplemented },
  INTERNAL: { code: Code.Internal },
} as const satisfies Record<string, Reason>;

/** Names a reason. */
export type ReasonName = keyof typeof reasons;

/** One field of a request and what is wrong with it. */
export type FieldViolation = MessageInitShape<typeof BadRequest_FieldViolationSchema>;

/** The domain of our reasons (google.rpc.ErrorInfo.domain). */
export const errorDomain = "quantum-safe-playground";

/** Characters of one text of the request that an error repeats at most. */
const maxEchoCharacters = 100;
/** Characters of a message or a description at most: gRPC clients accept 8 KiB of trailers. */
const maxMessageCharacters = 1000;
/** Violations that an error lists at most. */
const maxViolations = 20;

/**
 * Shortens text of a request for an error message.
 *
 * @returns at most `maxCharacters` UTF-16 code units. Shortened text ends with "…", and no surrogate pair is split.
 */
export function excerpt(text: string, maxCharacters = maxEchoCharacters): string {
  if (text.length <= maxCharacters) return text;
  const end = maxCharacters - 1;
  const isPairSplit =
    /[\ud800-\udbff]/.test(text.charAt(end - 1)) && /[\udc00-\udfff]/.test(text.charAt(end));
  return `${text.slice(0, isPairSplit ? end - 1 : end)}…`;
}

/** Shortens quoted texts and metadata values that a sentence repeats, then the sentence itself. */
function shortenSentence(sentence: string, values: readonly string[]): string {
  let short = sentence;
  for (const value of values) short = short.replaceAll(value, () => excerpt(value));
  if (short.length > maxEchoCharacters) {
    short = excerpt(short, 10 * maxMessageCharacters).replace(
      /"((?:[^"\\]|\\.){101,})("|$)/gsu,
      (_all, quoted: string, close: string) => `"${excerpt(quoted)}${close}`,
    );
  }
  // JSON can hold half a surrogate pair. No trailer can.
  return excerpt(short, maxMessageCharacters).toWellFormed();
}

/**
 * Makes the error that refuses a call; the caller of this function throws it.
 *
 * Shortens what it repeats of the request: metadata values and quoted texts to 100 characters, wherever they stand.
 *
 * @param message what was wrong and what would be right, for a person; public values only.
 * @param metadata whatever varies in the message, for a program; public values only.
 * @param violations the fields at fault, in the names of the JSON form.
 */
export function refuse(
  reason: ReasonName,
  message: string,
  metadata: Record<string, string> = {},
  violations: readonly FieldViolation[] = [],
): ConnectError {
  const { code } = reasons[reason];
  const long = Object.values(metadata).filter((value) => value.length > maxEchoCharacters);
  const shorten = (sentence: string): string => shortenSentence(sentence, long);
  const shortMetadata = Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => [name, excerpt(value).toWellFormed()]),
  );
  const error = new ConnectError(shorten(message), code, undefined, [
    { desc: ErrorInfoSchema, value: { reason, domain: errorDomain, metadata: shortMetadata } },
  ]);
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
  return withChallenge(error);
}

/** RFC 9110, section 15.5.2: a 401 says how to authenticate. */
function withChallenge(error: ConnectError): ConnectError {
  const isNew = error.code === Code.Unauthenticated && !error.metadata.has("www-authenticate");
  if (isNew) error.metadata.set("www-authenticate", "Bearer");
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
  reason: ReasonName = "FIELD_INVALID",
): ConnectError {
  return refuse(reason, `${field}: ${description}`, { field }, [{ field, description }]);
}

/** Refuses a call whose metadata is larger than a server takes. */
export function refuseMetadata(bytes: number, maxBytes: number): ConnectError {
  return refuse("METADATA_TOO_LARGE", `the request's metadata is ${bytes} bytes; the limit is ${maxBytes}`, {
    bytes: String(bytes),
    maxBytes: String(maxBytes),
  });
}

/** Ends a call because the server stops. */
export function refuseStopping(): ConnectError {
  return refuse("SHUTTING_DOWN", "the server stops; try again, it may be back");
}

/** Refuses a body, or one message of a stream, that is larger than a server takes. */
export function refuseBody(maxBytes: number): ConnectError {
  return refuse("BODY_TOO_LARGE", `the message is larger than the limit of ${maxBytes} bytes`, {
    maxBytes: String(maxBytes),
  });
}

/** Refuses a message with more parts than a server reads, before the server builds it. */
export function refuseComplex(limit: string, max: number): ConnectError {
  return refuse("MESSAGE_TOO_COMPLEX", `the message has more than ${max} ${limit}; send smaller messages`, {
    limit,
    max: String(max),
  });
}

/** Tells which of our reasons an error carries; undefined if it is not one of ours. */
export function findReason(error: ConnectError): ReasonName | undefined {
  for (const info of error.findDetails(ErrorInfoSchema)) {
    if (info.domain === errorDomain && info.reason in reasons) return info.reason as ReasonName;
  }
  return undefined;
}

/**
 * Explains an error that ended a call by its signal: Connect's deadline, and what Node says of a connection that
 * its client broke off. An error that a handler made itself knows more, and stays as it is.
 */
export function explainAbort(error: ConnectError, signal: AbortSignal): ConnectError {
  if (error !== signal.reason || findReason(error) !== undefined) return error;
  switch (error.code) {
    case Code.DeadlineExceeded:
      return refuse("DEADLINE_EXCEEDED", "the call did not end within its deadline");
    case Code.Canceled:
    case Code.Aborted:
    case Code.Internal:
      return refuse("CALL_CANCELED", "the caller canceled the call");
    default:
      return error;
  }
}

/** HTTP status of each gRPC code, as google/rpc/code.proto has it. */
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

/** The name of an error's gRPC code, as google/rpc/code.proto spells it: "NOT_FOUND". */
export function nameCode({ code }: ConnectError): string {
  return Code[code].replace(/(?<!^)([A-Z])/g, "_$1").toUpperCase();
}

/** Tells the HTTP status of a failed REST call. */
export function toHttpStatus(error: ConnectError): number {
  const reason = findReason(error);
  const known: Reason | undefined = reason === undefined ? undefined : reasons[reason];
  return known?.httpStatus ?? httpStatuses[error.code] ?? 500;
}

/**
 * Makes a ConnectError out of whatever a handler threw. What is not a ConnectError is a bug or a fault of
 * the machine: the caller learns nothing of it but that it happened; the cause is kept for the log.
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
