/** Gives every failed call the form that errors.ts defines, whatever code threw the error. */

import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { pathFromViolationProto } from "@bufbuild/protovalidate";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import { Code, type ConnectError } from "@connectrpc/connect";
import { explainAbort, findReason, refuse, restoreError, toConnectError } from "../../errors.ts";
import { listOneofRules } from "../../message-limits/oneof-rules.ts";
import { requestIdHeader } from "../request-ids.ts";
import { cutOff, mapStream } from "./streams.ts";
import { describeRule } from "./validation.ts";
import { findValueHint, type HintValue } from "./value-hints.ts";

/** Converts a handler's error to a refusal; undefined if the error is unknown. */
export type ExplainFailure = (thrown: unknown) => ConnectError | undefined;

/** Converts whatever a call throws to the error for its caller. */
export type MapError = (thrown: unknown, req: UnaryRequest | StreamRequest) => ConnectError;

/** Maps errors from handlers, the validator and Connect to refusals with a reason. */
export function createErrorMap(
  explainFailure: ExplainFailure = () => undefined,
  hintValue?: HintValue,
): MapError {
  // Shutdown aborts all calls with one error. Each call needs its own copy, which gets its request ID.
  const given = new WeakSet<ConnectError>();
  const own = (error: ConnectError): ConnectError => {
    // Nobody reads the error of a call that its caller canceled.
    if (error.code === Code.Canceled) return error;
    if (given.has(error)) return copyError(error);
    given.add(error);
    return error;
  };
  return (thrown, { signal, method, message, stream }) => {
    const hint: FindHint = (path) =>
      stream ? undefined : findValueHint(method.input, message as Message, path, hintValue);
    const error = explainAbort(explainFailure(thrown) ?? toConnectError(thrown), signal);
    return own(explain(error, method.input, hint));
  };
}

/** Copies an error without the request ID that it already has. */
function copyError(error: ConnectError): ConnectError {
  const copy = restoreError(error);
  copy.metadata.delete(requestIdHeader);
  copy.cause = error.cause;
  return copy;
}

/** Returns a hint for the value at a path; undefined if there is none, and for stream messages. */
type FindHint = (path: Path) => string | undefined;

/**
 * Gives a stream handler the reason why no more requests follow: one breaks a rule or cannot be read, or the call has
 * ended because of its deadline or its token. Runs inside validation. Otherwise a handler could not record
 * the reason, and would wait for requests of a finished call.
 */
export function requestErrorInterceptor(mapError: MapError): Interceptor {
  return (next) => (req) => {
    if (!req.stream || req.method.methodKind === "server_streaming") return next(req);
    const error = (thrown: unknown): ConnectError => mapError(thrown, req);
    return next({ ...req, message: mapStream(failOnAbort(req.message, req.signal), { error }) });
  };
}

async function* failOnAbort<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const requests = cutOff(source, signal);
  yield* requests.messages;
  if (requests.isCut()) throw signal.reason;
}

/** Maps the errors of streams and of their responses. */
export function streamErrorInterceptor(mapError: MapError): Interceptor {
  return (next) => async (req) => {
    if (!req.stream) return next(req);
    const error = (thrown: unknown): ConnectError => mapError(thrown, req);
    try {
      const res = await next(req);
      return res.stream ? { ...res, message: mapStream(res.message, { error }) } : res;
    } catch (thrown) {
      throw error(thrown);
    }
  };
}

function explain(error: ConnectError, input: DescMessage, hint: FindHint): ConnectError {
  if (findReason(error) !== undefined) return error;
  const faults = readFaults(error, input, hint);
  return faults.length > 0 ? fieldFaults(faults) : explainStream(error);
}

/** A broken rule: the invalid fields and one sentence about them. */
interface RuleFault {
  readonly fields: readonly string[];
  readonly description: string;
  readonly sentence: string;
}

function fieldFaults(faults: readonly RuleFault[]): ConnectError {
  const violations = faults.flatMap(({ fields, description }) =>
    fields.map((field) => ({ field, description })),
  );
  const message = faults.map(({ sentence }) => sentence).join("; ");
  const fields = new Set(violations.map(({ field }) => field));
  return refuse(
    "FIELD_INVALID",
    message,
    fields.size > 0 ? { field: [...fields].join(",") } : {},
    violations,
  );
}

/**
 * Adds a reason to Connect's error for a server stream without exactly one message. The server reads the messages
 * before Connect does (src/server/protocols/streams.ts), and explains everything else.
 */
function explainStream(error: ConnectError): ConnectError {
  if (error.code !== Code.Unimplemented) return error;
  if (error.rawMessage.startsWith("protocol error: missing input message")) return messageMissing();
  return error.rawMessage.startsWith("protocol error: received extra input message")
    ? severalMessages()
    : error;
}

/** Refuses a request without a message. */
export function messageMissing(): ConnectError {
  return refuse("NOT_IMPLEMENTED", "the request contains no message; send exactly one");
}

/** Refuses a request with more messages than its call takes. */
export function severalMessages(): ConnectError {
  return refuse("NOT_IMPLEMENTED", "the request contains several messages; send exactly one");
}

/** Refuses a compressed message if no header names its encoding. */
export function compressionInvalid(): ConnectError {
  // grpc/grpc, doc/compression.md, "Test cases", requires INTERNAL.
  return refuse("ENCODING_MISSING", "the message is marked as compressed, but no header names the encoding");
}

/** Reads the violations that @connectrpc/validate attaches, with JSON field names. */
function readFaults(error: ConnectError, input: DescMessage, hint: FindHint): RuleFault[] {
  const violations = error.findDetails(ViolationsSchema).flatMap((detail) => detail.violations);
  return violations.map(({ field, message, ruleId }) => {
    const path = field === undefined ? [] : pathFromViolationProto(input, field);
    const advice = ruleId === "string.in" ? hint(path) : undefined;
    const rule = ruleId === "message.oneof" ? describeOneof(input, message) : describeRule(message);
    const description = advice === undefined ? rule : describeAdvice(advice, rule);
    const name = path.map(describePart).join("").replace(/^\./, "");
    // A rule across several fields has no field path. Its message names the fields.
    if (name === "") return { fields: findNamed(input, description), description, sentence: description };
    return { fields: [name], description, sentence: `${name}: ${description}` };
  });
}

/** Describes which fields go together. The validator's own message uses their proto names. */
function describeOneof(input: DescMessage, message: string): string {
  return (
    listOneofRules(input).find(({ fields }) => message.includes(` of ${fields.join(", ")} `))?.text ?? message
  );
}

/** The advice comes first, because the list in a rule may have many names. */
function describeAdvice(advice: string, rule: string): string {
  return advice.endsWith("?") ? `${advice} It ${rule}` : `${advice}; it ${rule}`;
}

function findNamed(input: DescMessage, text: string): string[] {
  const words = new Set(text.match(/\w+/g));
  return input.fields.map(({ jsonName }) => jsonName).filter((name) => words.has(name));
}

function describePart(part: ReturnType<typeof pathFromViolationProto>[number]): string {
  switch (part.kind) {
    case "field":
      return `.${part.jsonName}`;
    case "oneof":
    case "extension":
      return `.${part.name}`;
    case "list_sub":
      return `[${part.index}]`;
    case "map_sub":
      return `[${JSON.stringify(String(part.key))}]`;
  }
}
