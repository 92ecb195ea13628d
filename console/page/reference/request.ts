/** One request: its parameter values and body, and what HTTP and gRPC send for them. */
import type { Json, Parameter } from "../../../src/openapi/document.ts";
import { type HttpRequest, parseJson } from "../snippets/input.ts";
import { isUpload, listExamples, type Operation } from "./document.ts";

/** The values that a reader has filled in. */
export interface Draft {
  /** By name; empty values are left out. */
  readonly parameters: Readonly<Record<string, string>>;
  /** JSON; undefined if the call has no such body. */
  readonly body: string | undefined;
  /** The body of an upload; empty until the reader chooses a file. */
  readonly file?: File | undefined;
}

/**
 * Fills in an example.
 *
 * @param name a body example's name; by default, or if it does not exist, the first
 */
export function draftRequest(operation: Operation, name: string): Draft {
  const examples = listExamples(operation.requestBody?.content);
  const value = (examples.find((one) => one.name === name) ?? examples[0])?.value ?? {};
  const parameters = operation.parameters.map(
    (one) => [one.name, one.example === undefined ? "" : String(one.example)] as const,
  );
  return {
    parameters: Object.fromEntries(parameters),
    ...(isUpload(operation)
      ? { body: undefined, file: new File([], "file.bin") }
      : { body: operation.requestBody === undefined ? undefined : JSON.stringify(value, null, 2) }),
  };
}

/**
 * Builds the HTTP request.
 *
 * @param origin the server's origin: "http://127.0.0.1:8080"
 */
export function buildHttp(operation: Operation, draft: Draft, origin: string): HttpRequest {
  const readValue = ({ name }: Parameter): string => draft.parameters[name] ?? "";
  const pick = (place: Parameter["in"]) =>
    operation.parameters.filter((one) => one.in === place && readValue(one) !== "");
  const path = pick("path").reduce(
    // Without a value, the placeholder stays, so that the reader sees what is missing.
    (text, one) => text.replace(`{${one.name}}`, () => encodeURIComponent(readValue(one))),
    operation.path,
  );
  const query = pick("query").flatMap((one) =>
    splitValues(one, readValue(one)).map(
      (value) => `${encodeURIComponent(one.name)}=${encodeURIComponent(value)}`,
    ),
  );
  return {
    verb: operation.verb,
    url: origin + path + (query.length === 0 ? "" : `?${query.join("&")}`),
    headers: Object.fromEntries([
      ...pick("header").map((one) => [one.name.toLowerCase(), readValue(one)]),
      ...(draft.file === undefined ? [] : [["content-type", "application/octet-stream"]]),
    ]),
    body: draft.body,
    file: draft.file,
  };
}

/** Why a request cannot be sent; empty if it can. */
export function findFault(operation: Operation, draft: Draft): string {
  const { parameters } = operation;
  const missing = parameters.filter((one) => one.in === "path" && !draft.parameters[one.name]);
  if (missing.length > 0)
    return `Fill in ${missing.map(({ name }) => name).join(", ")}; the path requires it.`;
  // Fetch takes only these characters, and throws the error of a lost connection.
  const broken = parameters.find(
    (one) => one.in === "header" && !/^[\x20-\x7e]*$/.test(draft.parameters[one.name] ?? ""),
  );
  if (broken !== undefined) return `${broken.name} may have only printable ASCII characters.`;
  if (draft.file?.size === 0) return "Choose a file that is not empty.";
  if (draft.body !== undefined && parseJson(draft.body) === undefined)
    return 'The body is not JSON. Names and texts need double quotes, as in {"keyId": "key-1"}.';
  return "";
}

function splitValues({ schema }: Parameter, text: string): string[] {
  return schema?.type === "array" ? text.split(",").map((part) => part.trim()) : [text];
}

/**
 * Builds the gRPC message in JSON form.
 *
 * @returns undefined if the body is not JSON
 */
export function buildMessage(operation: Operation, draft: Draft): Json | undefined {
  const body = draft.body === undefined ? {} : parseJson(draft.body);
  const whole = operation["x-grpc"].request;
  if (body === undefined || whole === undefined) return body;
  const message: Record<string, Json> = isObject(whole) ? { ...whole } : {};
  const [example] = listExamples(operation.requestBody?.content);
  const shown = JSON.stringify(example?.value);
  const field = Object.keys(message).find((name) => JSON.stringify(message[name]) === shown);
  if (field !== undefined) message[field] = body;
  else if (isObject(body)) Object.assign(message, body);
  for (const parameter of operation.parameters) {
    const text = draft.parameters[parameter.name] ?? "";
    if (parameter.in === "header" || parameter.name.startsWith("$") || parameter.name.includes(".")) continue;
    setField(message, parameter, text);
  }
  return message;
}

function setField(message: Record<string, Json>, parameter: Parameter, text: string): void {
  const { name, description = "" } = parameter;
  const pattern = /value of the field is `([^`]+)`/i.exec(description)?.[1];
  if (pattern !== undefined) {
    // "name2" is the second part of the field "name".
    const field = name.replace(/\d+$/, "");
    const index = pattern.split("/").indexOf(`{${name}}`);
    const known = message[field];
    if (typeof known === "string" && index >= 0 && text !== "")
      message[field] = known.split("/").with(index, text).join("/");
  } else if (text === "") delete message[name];
  else message[name] = toJson(parameter, text);
}

function toJson(parameter: Parameter, text: string): Json {
  const type = [parameter.schema?.type ?? []].flat();
  if (type.includes("array")) return splitValues(parameter, text);
  if (type.includes("boolean")) return text === "true";
  if (type.includes("integer") || type.includes("number")) return Number(text);
  return text;
}

function isObject(value: Json): value is { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
