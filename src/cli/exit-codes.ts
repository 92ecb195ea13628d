/** Maps errors to exit codes for scripts and to one sentence for people. */
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { nameCode } from "../calls/code-name.ts";
import { CryptoError } from "../crypto/crypto-error.ts";
import { describeSystemError, saysDiskFull } from "../system-error.ts";

export const exitCodes = {
  done: 0,
  no: 1,
  usage: 2,
  refused: 3,
  unreachable: 4,
  fault: 70,
  interrupted: 130,
} as const;

/** Meanings of the exit codes, as the help shows them. */
export const exitCodeMeanings: readonly (readonly [number, string])[] = [
  [exitCodes.done, "success, or the answer is yes"],
  [
    exitCodes.no,
    "the answer is no: a signature is not valid, a chain is broken, a device is not authenticated, a master key does not open a backup",
  ],
  [exitCodes.usage, "the command line, a setting, a file or a store is invalid"],
  [exitCodes.refused, "the server refused the call; the reason is in parentheses"],
  [
    exitCodes.unreachable,
    "the server, a database or an address is unreachable or unavailable, or timed out; or a disk is full",
  ],
  [exitCodes.fault, "a bug in qsp"],
  [exitCodes.interrupted, "interrupted"],
];

/** Ends the client with an exit code and a sentence. */
export class CliError extends Error {
  readonly exitCode: number;
  /** The server's refusal, or a full disk; undefined for other client errors. */
  readonly refusal: Refusal | undefined;

  constructor(
    exitCode: number,
    message: string,
    { refusal, ...options }: ErrorOptions & { readonly refusal?: Refusal } = {},
  ) {
    super(message, options);
    this.name = "CliError";
    this.exitCode = exitCode;
    this.refusal = refusal;
  }
}

/** Why a server refused a call or a disk refused a file, in machine-readable form. */
interface Refusal {
  /** Spelled as in google/rpc/code.proto. */
  readonly code: string;
  /** A reason from docs/errors.md; empty from a third-party server. */
  readonly reason: string;
  /** The invalid fields, with their JSON names. */
  readonly fieldViolations: readonly { readonly field: string; readonly description: string }[];
}

/** Creates the error for an invalid command line or file. */
export function usageError(message: string): CliError {
  return new CliError(exitCodes.usage, message);
}

/**
 * Creates the error for a file that cannot be written. A full disk has its own exit code: the command can succeed once
 * space is freed.
 *
 * @param cause the system error
 */
export function outputError(message: string, cause: unknown): CliError {
  if (!saysDiskFull(cause)) return usageError(message);
  const refusal = { code: "RESOURCE_EXHAUSTED", reason: "DISK_FULL", fieldViolations: [] };
  return new CliError(exitCodes.unreachable, message, { refusal });
}

/** Creates the error for a peer, a log or a signature that fails an authenticity check. */
export function distrustError(message: string): CliError {
  return new CliError(exitCodes.no, message);
}

/** Hints to append to the message of a refusal, by reason. */
export type Hints = Readonly<Record<string, string>>;

/**
 * Converts any error of a verb to an exit code and a sentence.
 *
 * @param ownHints replace the general hints
 */
export function toCliError(error: unknown, url: string, ownHints: Hints = {}): CliError {
  if (error instanceof CliError) return error;
  if (error instanceof ConnectError) return explainCall(error, url, ownHints);
  if (error instanceof CryptoError) return usageError(error.message);
  if (error instanceof Error && "code" in error && "path" in error)
    return usageError(explainFile(String(error.path), error));
  const message = error instanceof Error ? error.message : String(error);
  return new CliError(exitCodes.fault, `a bug in qsp: ${message}`, { cause: error });
}

/** Returns the reason of a refusal; undefined if it has none, as from a third-party server. */
export function findReason(error: ConnectError): string | undefined {
  return error.findDetails(ErrorInfoSchema)[0]?.reason;
}

/** Codes with which Connect reports that no qsp server answered. */
const brokenCodes: ReadonlySet<Code> = new Set([
  ...[Code.Canceled, Code.Unknown, Code.Internal, Code.Aborted, Code.Unimplemented, Code.Unavailable],
]);

function explainCall(error: ConnectError, url: string, ownHints: Hints): CliError {
  const { code, rawMessage } = error;
  const reason = findReason(error);
  if (reason === undefined && brokenCodes.has(code))
    return new CliError(
      exitCodes.unreachable,
      `${url} cannot be reached: ${rawMessage}; name a running server with --url`,
    );
  const isLate = code === Code.DeadlineExceeded;
  // Server messages are written for API callers, not for CLI users.
  const advice = reason === "TOKEN_MISSING" ? "log in first: qsp login USERNAME" : rawMessage;
  const sentence = `${isLate ? `${url} took too long` : advice} (${name(code, reason)})`;
  const hint = { ...hints, ...ownHints }[reason ?? ""] ?? "";
  const exitCode = isLate || code === Code.Unavailable ? exitCodes.unreachable : exitCodes.refused;
  return new CliError(exitCode, `${sentence}${hint}`, { refusal: readRefusal(error) });
}

function readRefusal(error: ConnectError): Refusal {
  const violations = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
  return {
    code: nameCode(error.code),
    reason: findReason(error) ?? "",
    fieldViolations: violations.map(({ field, description }) => ({ field, description })),
  };
}

const hints: Hints = {
  TOKEN_EXPIRED: "; log in again with qsp login",
  TOKEN_REVOKED: "; log in again with qsp login",
  TOKEN_KEY_UNKNOWN: "; log in again with qsp login",
  KEY_NOT_FOUND: "; qsp kms list and qsp kms grants --received show the keys",
  GRANT_NOT_FOUND: "; qsp kms grants shows the grants",
  WALLET_NOT_FOUND: "; qsp wallet list shows the wallets",
  DEVICE_NOT_FOUND: "; qsp device list shows the devices",
  TUNNEL_NOT_FOUND: "; qsp tunnel up creates one",
  VALIDATOR_MISSING: "; qsp chain validator creates one",
};

/** Formats code and reason: "NOT_FOUND, KEY_NOT_FOUND". */
function name(code: Code, reason: string | undefined): string {
  const codeName = nameCode(code);
  return reason === undefined || reason === codeName ? codeName : `${codeName}, ${reason}`;
}

const fileSentences: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EEXIST: "already exists; name another file",
  EISDIR: "is a directory; name a file",
};

function explainFile(path: string, error: Error & { readonly code: unknown }): string {
  const sentence = fileSentences[String(error.code)];
  return sentence === undefined ? `${path}: ${describeSystemError(error)}` : `${path} ${sentence}`;
}
