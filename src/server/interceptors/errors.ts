/** Gives every failed call the form that errors.ts defines, whoever threw. */

import type { DescMessage } from "@bufbuild/protobuf";
import { pathFromViolationProto } from "@bufbuild/protovalidate";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { Interceptor } from "@connectrpc/connect";
import { Code, type ConnectError } from "@connectrpc/connect";
import { explainAbort, type FieldViolation, reasonOf, refuse, toConnectError } from "../../errors.ts";
import { mapStream } from "./streams.ts";

/** Maps what handlers, the validator and Connect throw to refusals with a reason. */
export function errorInterceptor(): Interceptor {
  return (next) => async (req) => {
    const map = (thrown: unknown): ConnectError =>
      explain(explainAbort(toConnectError(thrown), req.signal), req.method.input);
    try {
      if (!req.stream) return await next(req);
      const res = await next({ ...req, message: mapStream(req.message, { error: map }) });
      return res.stream ? { ...res, message: mapStream(res.message, { error: map }) } : res;
    } catch (thrown) {
      throw map(thrown);
    }
  };
}

function explain(error: ConnectError, input: DescMessage): ConnectError {
  if (reasonOf(error) !== undefined) return error;
  const violations = readViolations(error, input);
  if (violations.length > 0) {
    const message = violations.map(({ field, description }) =>
      field ? `${field}: ${description}` : description,
    );
    const fields = violations.map(({ field }) => field).filter(Boolean);
    return refuse(
      "FIELD_INVALID",
      message.join("; "),
      fields.length > 0 ? { field: fields.join(",") } : {},
      violations,
    );
  }
  return error.code === Code.Internal ? explainStream(error) : error;
}

/** What Connect says of a stream that it can not read: "parse binary: …", "received compressed envelope, …". */
function explainStream(error: ConnectError): ConnectError {
  if (error.rawMessage.startsWith("parse binary")) return refuseMalformed(error.rawMessage);
  return error.rawMessage.startsWith("received compressed envelope") ? refuseCompressed() : error;
}

/** Refuses bytes that are no message of the request's type. */
export function refuseMalformed(reason: string): ConnectError {
  return refuse(
    "MESSAGE_MALFORMED",
    `the request is not a message of its type: ${reason.replace("parse binary: ", "")}`,
  );
}

/** Refuses a message that is compressed nobody says how. */
export function refuseCompressed(): ConnectError {
  // grpc/grpc, doc/compression.md, "Test cases", wants INTERNAL.
  return refuse("ENCODING_MISSING", "the message is marked as compressed, but no header says with what");
}

/** Reads the violations that @connectrpc/validate attaches, with fields named as in JSON. */
function readViolations(error: ConnectError, input: DescMessage): FieldViolation[] {
  return error.findDetails(ViolationsSchema).flatMap(({ violations }) =>
    violations.map((violation) => {
      const path = violation.field === undefined ? [] : pathFromViolationProto(input, violation.field);
      const names = path.map((part) => describePart(part)).join("");
      return { field: names.replace(/^\./, ""), description: violation.message };
    }),
  );
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
