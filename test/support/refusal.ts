import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";

/** How a call was refused, in machine-readable form. */
export interface Refusal {
  readonly code: string;
  readonly reason: string | undefined;
  /** The invalid fields, as in google.rpc.BadRequest; absent if it lists none. */
  readonly fields?: readonly string[];
}

/** Returns how a call was refused; fails the test if the call succeeds. */
export async function refusal(call: Promise<unknown>): Promise<Refusal> {
  return describeRefusal(await failureOf(call));
}

/** Returns the error of a failed call; fails the test if the call succeeds. */
export async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  const answer = await call.then(
    (value) => ({ value }),
    (error: unknown) => ConnectError.from(error),
  );
  if (answer instanceof ConnectError) return answer;
  throw new Error(`the call was not refused; it answered ${JSON.stringify(answer.value, bigintToString)}`);
}

/** Extracts the details of an error. */
export function describeRefusal(error: ConnectError): Refusal {
  const violations = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
  return {
    code: Code[error.code],
    reason: error.findDetails(ErrorInfoSchema)[0]?.reason,
    ...(violations.length > 0 && { fields: violations.map(({ field }) => field) }),
  };
}

function bigintToString(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

/** Counts call results: how many succeeded, and how the others were refused. */
export async function outcomesOf(calls: readonly Promise<unknown>[]) {
  const settled = await Promise.allSettled(calls);
  const failed = settled.filter((one) => one.status === "rejected");
  const refusals = await Promise.all(failed.map(({ reason }) => refusal(Promise.reject(reason))));
  return { answered: settled.length - failed.length, refusals };
}

/** The reason of a refused call; "answer" if the call succeeds. */
export function outcomeOf(call: Promise<unknown>): Promise<string | undefined> {
  return call.then(
    () => "answer",
    (error) => refusal(Promise.reject(error)).then(({ reason }) => reason),
  );
}
