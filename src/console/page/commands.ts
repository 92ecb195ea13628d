/** Writes a call as a command for a shell: curl for its REST form, grpcurl for gRPC. */
import { getOption, hasOption, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.ts";
import { readTarget, type SnippetCall, type SnippetOptions, tokenVariable } from "./snippets/call.ts";
import { quoteShell as quote, writeJson } from "./snippets/literals.ts";
import { shorten } from "./values.ts";

/** The request as JSON, in the names of the REST form. */
export function requestJson({ method, request }: Pick<SnippetCall, "method" | "request">): JsonObject {
  // The JSON form of a message is an object, except for well-known types, and no request is one.
  const fields = toJson(method.input, request) as JsonObject;
  // A password must not appear on the screen, or in the history of a shell.
  return "password" in fields ? { ...fields, password: "(your password)" } : fields;
}

/** @returns undefined for a call that has no REST form */
export function writeCurl(
  call: SnippetCall,
  { origin, isShort = false }: SnippetOptions,
): string | undefined {
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
  if (call.token !== undefined) lines.push(bearer);
  if (!hasBody) return joinLines(lines);
  lines.push("-H 'content-type: application/json'");
  return joinBody(lines, "@-", stringify(fields, isShort));
}

/** The same call over gRPC; the server tells grpcurl its protos by reflection. */
export function writeGrpcurl(call: SnippetCall, { origin, isShort = false }: SnippetOptions): string {
  const { target, isSecure } = readTarget(origin);
  const lines = [`grpcurl${isSecure ? "" : " -plaintext"}`];
  if (call.token !== undefined) lines.push(bearer);
  const fields = requestJson(call);
  const place = `${quote(target)} ${call.method.parent.typeName}/${call.method.name}`;
  if (Object.keys(fields).length === 0) return joinLines([...lines, place]);
  return joinBody(lines, "@", stringify(fields, isShort), place);
}

/** The shell replaces the variable in double quotes, and reads nothing else in its value. */
const bearer = `-H "authorization: Bearer $${tokenVariable}"`;

/** Linux passes at most 131,072 bytes as one argument (execve(2), MAX_ARG_STRLEN); a character may have four. */
const maxArgumentCharacters = 30_000;

/** @param fromInput what the program takes as `-d` to read its standard input */
function joinBody(lines: readonly string[], fromInput: string, body: string, ...rest: string[]): string {
  if (body.length <= maxArgumentCharacters) return joinLines([...lines, `-d ${quote(body)}`, ...rest]);
  // The body is one line that begins with a brace, so that it cannot end the document.
  return `${joinLines([...lines, `-d ${fromInput}`, ...rest])} <<'END'\n${body}\nEND`;
}

function joinLines(lines: readonly string[]): string {
  return lines.join(" \\\n  ");
}

/** Pretty JSON for reading: the middle of long values is left out. */
export function readableJson(value: JsonValue): string {
  return JSON.stringify(value, shortenStrings, 2);
}

function stringify(value: JsonValue, isShort: boolean): string {
  return writeJson(isShort ? JSON.parse(JSON.stringify(value, shortenStrings)) : value);
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
