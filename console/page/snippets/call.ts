/** A console call, and the request from which its snippets are generated. */
import {
  type DescMethodServerStreaming,
  type DescMethodUnary,
  getOption,
  hasOption,
  type JsonObject,
  type JsonValue,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.ts";
import { shorten } from "../values.ts";
import type { HttpRequest, SnippetInput } from "./input.ts";
import { writeJson } from "./literals.ts";

/** A call, whether or not it has been made. */
export interface SnippetCall {
  readonly method: DescMethodUnary | DescMethodServerStreaming;
  readonly request: Message;
  /** The token that was sent with the call. */
  readonly token: string | undefined;
}

/** The request as JSON, with REST field names. */
export function requestJson({ method, request }: Pick<SnippetCall, "method" | "request">): JsonObject {
  // A message's JSON form is an object, except for well-known types, and no request is one of those.
  const fields = toJson(method.input, request) as JsonObject;
  // A password must not appear on the screen or in a shell's history.
  return "password" in fields ? { ...fields, password: "(your password)" } : fields;
}

/** Pretty-printed JSON for reading, with long values shortened in the middle. */
export function readableJson(value: JsonValue): string {
  return JSON.stringify(value, shortenStrings, 2);
}

/**
 * Describes a call for the snippet writers.
 *
 * @param isShort shortens long values in the middle, for reading
 * @throws RangeError for a call without a REST form
 */
export function describeCall(call: SnippetCall, origin: string, isShort = false): SnippetInput {
  const { method, token } = call;
  const fields = requestJson(call);
  const message: JsonObject = isShort ? JSON.parse(JSON.stringify(fields, shortenStrings)) : fields;
  return {
    http: describeHttp(call, message, origin),
    message,
    rpc: `${method.parent.typeName}/${method.name}`,
    hasToken: token !== undefined,
    isStream: method.methodKind !== "unary",
    isJson: true,
  };
}

function describeHttp({ method }: SnippetCall, message: JsonObject, origin: string): HttpRequest {
  const rule = hasOption(method, http) ? getOption(method, http) : undefined;
  if (typeof rule?.pattern.value !== "string") throw new RangeError(`${method.name} has no REST form`);
  const fields = { ...message };
  const path = rule.pattern.value.replace(/\{(\w+)[^}]*\}/g, (_whole, name: string) => {
    const jsonName = method.input.fields.find((field) => field.name === name)?.jsonName ?? name;
    const value = String(fields[jsonName] ?? "");
    delete fields[jsonName];
    return encodeURIComponent(value);
  });
  const hasBody = rule.body === "*";
  return {
    verb: (rule.pattern.case ?? "get").toUpperCase(),
    url: origin + path + (hasBody ? "" : toQuery(fields)),
    headers: {},
    body: hasBody ? writeJson(fields) : undefined,
  };
}

function shortenStrings(_name: string, value: unknown): unknown {
  return typeof value === "string" ? shorten(value) : value;
}

function toQuery(fields: JsonObject): string {
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((item) => `${name}=${encodeURIComponent(String(item))}`),
  );
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}
