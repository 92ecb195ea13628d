import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";

/** How a call was refused: what a program can act on. */
export interface Refusal {
  readonly code: string;
  readonly reason: string | undefined;
  /** The fields at fault, as google.rpc.BadRequest names them; absent if it names none. */
  readonly fields?: readonly string[];
}

/** How a call was refused; a call that succeeds fails the test. */
export async function refusal(call: Promise<unknown>): Promise<Refusal> {
  return describeRefusal(await failureOf(call));
}

/** The error with which a call failed; a call that succeeds fails the test. */
export async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  const answer = await call.then(
    (value) => ({ value }),
    (error: unknown) => ConnectError.from(error),
  );
  if (answer instanceof ConnectError) return answer;
  throw new Error(`the call was not refused; it answered ${JSON.stringify(answer.value, bigintToString)}`);
}

/** Takes an error apart. */
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

/** How calls came out: how many were answered, and how the others were refused. */
export async function outcomesOf(calls: readonly Promise<unknown>[]) {
  const settled = await Promise.allSettled(calls);
  const failed = settled.filter((one) => one.status === "rejected");
  const refusals = await Promise.all(failed.map(({ reason }) => refusal(Promise.reject(reason))));
  return { answered: settled.length - failed.length, refusals };
}

/** The reason for which a call is refused; "answer" if it is not. */
export function outcomeOf(call: Promise<unknown>): Promise<string | undefined> {
  return call.then(
    () => "answer",
    (error) => refusal(Promise.reject(error)).then(({ reason }) => reason),
  );
}
