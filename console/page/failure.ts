/** A call's failure. */
import { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { nameCode } from "../../src/calls/code-name.ts";

/** A failed call, with a reason for programs and a message for people. */
export class Failure extends Error {
  /** Such as KEY_NOT_FOUND; the code's name if the server sent no reason. */
  readonly reason: string;
  /** The gRPC code, such as NOT_FOUND. */
  readonly code: string;

  constructor(reason: string, code: string, message: string) {
    super(message);
    this.reason = reason;
    this.code = code;
  }
}

/** Converts any call error to a failure. */
export function toFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  const error = ConnectError.from(thrown);
  const code = nameCode(error.code);
  const reason = error.findDetails(ErrorInfoSchema)[0]?.reason;
  // Fetch standard, "fetch method": a failed connection is a TypeError without details.
  const isLost = reason === undefined && error.cause instanceof TypeError;
  if (isLost) return createUnreachable();
  return new Failure(reason ?? code, code, error.rawMessage);
}

/** Replaces API field names with a form's labels: "grantee: is missing" becomes "User: is missing". */
export function nameFields(
  { reason, code, message }: Failure,
  labels: Readonly<Record<string, string>>,
): Failure {
  return new Failure(
    reason,
    code,
    message.replace(/\b\w+(?=: )/g, (name) => labels[name] ?? name),
  );
}

/**
 * Waits for a call that the server should refuse.
 *
 * @returns the refusal
 * @throws Failure if the server accepts the call, or if the call fails for any other reason
 */
export async function expectRefusal(call: Promise<unknown>, reason: string): Promise<Failure> {
  const accepted = () =>
    new Failure("NOT_REFUSED", "OK", "The server accepted a call that it should have refused.");
  const failure = await call.then(accepted, toFailure);
  if (failure.reason !== reason) throw failure;
  return failure;
}

/** The failure of a call that reached no server. */
export function createUnreachable(): Failure {
  const message = "The server could not be reached. Check that it is running, then try again.";
  return new Failure("UNREACHABLE", "UNAVAILABLE", message);
}
