/** Writes a call as a command for a shell: curl for its REST form, grpcurl for gRPC. */
import { getOption, hasOption, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.ts";
import type { CallRecord } from "./calls.ts";
import { shorten } from "./values.ts";

/** How a command is written. */
export interface CommandOptions {
  /** The origin of the server: "http://127.0.0.1:8080". */
  readonly origin: string;
  /** Leaves out the middle of long values, for reading. */
  readonly isShort?: boolean;
}

/** The request as JSON, in the names of the REST form. */
export function requestJson({ method, request }: CallRecord): JsonObject {
  // The JSON form of a message is an object, except for well-known types, and no request is one.
  const fields = toJson(method.input, request) as JsonObject;
  // A password must not appear on the screen, or in the history of a shell.
  return "password" in fields ? { ...fields, password: "(your password)" } : fields;
}

/** @returns undefined for a call that has no REST form */
export function writeCurl(call: CallRecord, { origin, isShort = false }: CommandOptions): string | undefined {
  const rule = hasOption(call.method, http) ? getOption(call.method, http) : undefined;
  if (typeof rule?.pattern.value !== "string") return undefined;
  const verb = (rule.pattern.case ?? "get").toUpperCase();
  const fields = requestJson(call);
  const path = rule.pattern.value.replace(/\{(\w+)[^}]*\}/g, (_whole, name: string) => {
    const jsonName = call.method.input.fields.find((field) => field.name === name)?.jsonName ?? name;
    const value = String(fields[jsonName] ?? "");
    delete fields[jsonName];
    return encodeURIComponent(value);
  });
  const hasBody = rule.body === "*";
  const query = hasBody ? "" : toQuery(fields);
  const lines = [`curl -s${call.method.methodKind === "unary" ? "" : "N"} ${quote(origin + path + query)}`];
  if (verb !== (hasBody ? "POST" : "GET")) lines.push(`-X ${verb}`);
  if (call.token !== undefined) lines.push(`-H ${quote(writeBearer(call.token, isShort))}`);
  if (hasBody) lines.push("-H 'content-type: application/json'", `-d ${quote(stringify(fields, isShort))}`);
  return lines.join(" \\\n  ");
}

/** The same call over gRPC; the server tells grpcurl its protos by reflection. */
export function writeGrpcurl(call: CallRecord, { origin, isShort = false }: CommandOptions): string {
  const url = new URL(origin);
  const lines = [`grpcurl${url.protocol === "https:" ? "" : " -plaintext"}`];
  if (call.token !== undefined) lines.push(`-H ${quote(writeBearer(call.token, isShort))}`);
  const fields = requestJson(call);
  if (Object.keys(fields).length > 0) lines.push(`-d ${quote(stringify(fields, isShort))}`);
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  lines.push(`${url.hostname}:${port} ${call.method.parent.typeName}/${call.method.name}`);
  return lines.join(" \\\n  ");
}

/** Pretty JSON for reading: the middle of long values is left out. */
export function readableJson(value: JsonValue): string {
  return JSON.stringify(value, shortenStrings, 2);
}

function stringify(value: JsonValue, isShort: boolean): string {
  return JSON.stringify(value, isShort ? shortenStrings : undefined);
}

function shortenStrings(_name: string, value: unknown): unknown {
  return typeof value === "string" ? shorten(value) : value;
}

function writeBearer(token: string, isShort: boolean): string {
  return `authorization: Bearer ${isShort ? shorten(token) : token}`;
}

function toQuery(fields: JsonObject): string {
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((item) => `${name}=${encodeURIComponent(String(item))}`),
  );
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

/** Quotes for a POSIX shell, where needed. */
function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
