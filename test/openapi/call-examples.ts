/** Makes the example calls like a client that has only the document. */

import { type Answered, type Example, fillExample } from "../../src/calls/example.ts";
import type { OpenApiDocument, Operation, Parameter } from "../../src/openapi/document.ts";
import { loadFromExtensions } from "../support/extension-tests.ts";
import { loadPackages } from "../support/whole-program.ts";
import { type ComputedValues, computeValues as ofCore } from "./computed-values.ts";

const ofExtensions = await loadFromExtensions<{ readonly computeValues: ComputedValues }>("computed-values");
const computeValues: ComputedValues = Object.assign(
  {},
  ofCore,
  ...ofExtensions.map((module) => module.computeValues),
);

/** What extensions do before an example, by its name. */
const preparations = await loadFromExtensions<{
  readonly prepare: Readonly<Record<string, (url: string) => Promise<unknown>>>;
}>("prepare-examples");

export type Members = Readonly<Record<string, unknown>>;

/** An operation of a document, and where it is. */
export interface Found {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

/** What calling an example returned. */
export interface Outcome {
  readonly found: Found;
  readonly status: number;
  readonly mediaType: string;
  readonly body: Members | undefined;
  /** The raw body. */
  readonly bytes: Uint8Array;
  /** The body that was sent, text for raw bytes; undefined if the request had none. */
  readonly sent: Members | string | undefined;
  /** What was called, with which headers. */
  readonly call: HttpCall;
  readonly headers: Readonly<Record<string, string>>;
}

/** The examples of all packages, in order. */
export async function loadExamples(): Promise<readonly Example[]> {
  const modules = await Promise.all((await loadPackages()).map(({ load }) => load()));
  return modules.flatMap(({ examples }) => examples);
}

/** Lists every operation of a document without extensions, as other readers see it. */
export function listOperations({ paths }: OpenApiDocument): Found[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => !method.startsWith("x-"))
      .map(([method, operation]) => ({ path, method, operation })),
  );
}

/** Finds the operation of an RPC: "kms.KmsService.Sign" is kms_KmsService_Sign. */
export function findOperation(document: OpenApiDocument, rpc: string): Found {
  const id = rpc.replaceAll(".", "_");
  const found = listOperations(document).find(({ operation }) => operation.operationId === id);
  if (found === undefined) throw new Error(`the document has no operation ${id}`);
  return found;
}

/** A server whose description names its calls. */
export interface Described {
  readonly url: string;
  readonly document: OpenApiDocument;
}

/** The response to a call, parsed and raw. */
export type Answer = Pick<Outcome, "body" | "bytes">;

/** Fills in requests with values from earlier answers. */
export interface AnswerBook {
  /** Fills in an example's request and token. */
  complete(example: Example): Promise<{ readonly request: Members; readonly token: string | undefined }>;
  keep(name: string, answer: Answer): void;
}

/** Creates an empty book. */
export function createAnswerBook(): AnswerBook {
  const answers = new Map<string, Answer>();
  const computed = new Map<string, Members>();
  const fill = ({ answerOf: example, path }: Answered) => {
    const body = computed.get(example) ?? answers.get(example)?.body;
    const value = path.split(".").reduce((at: unknown, name) => (at as Members | undefined)?.[name], body);
    if (typeof value !== "string") throw new Error(`the answer of ${example} has no ${path}`);
    return value;
  };
  return {
    async complete(example) {
      for (const [name, compute] of Object.entries(computeValues))
        if (needs(example, name)) computed.set(name, await compute(answers));
      const request = fillExample(example.request, fill) as Members;
      return { request, token: example.token && fill(example.token) };
    },
    keep: (name, answer) => void answers.set(name, answer),
  };
}

/** Does what an example needs besides the examples before it. */
export async function prepareExample(url: string, { name }: Pick<Example, "name">): Promise<void> {
  for (const { prepare } of preparations) await prepare[name]?.(url);
}

/**
 * Makes the calls of examples one after another.
 *
 * @returns the result of each, by example name
 */
export async function callExamples(
  { url, document }: Described,
  examples: readonly Example[],
): Promise<ReadonlyMap<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const book = createAnswerBook();
  for (const example of examples) {
    await prepareExample(url, example);
    const { request, token } = await book.complete(example);
    const outcome = await call(url, findOperation(document, example.rpc), request, token);
    outcomes.set(example.name, outcome);
    book.keep(example.name, outcome);
  }
  return outcomes;
}

/**
 * Returns whether a request contains a value from the named answer, or from a value computed from answers.
 */
function needs({ request }: Example, name: string): boolean {
  let isNeeded = false;
  fillExample(request, ({ answerOf }) => {
    isNeeded ||= answerOf === name;
    return null;
  });
  return isNeeded;
}

/**
 * Returns the request field that is the body; undefined if the body has all fields that are not parameters.
 */
export function findBodyField({ requestBody }: Operation, request: Members): string | undefined {
  const schema = requestBody?.content["application/json"]?.schema.$ref ?? "Request";
  if (schema.endsWith("Request")) return undefined;
  // "google.cloud.kms.v1.CryptoKeyInput" is the field cryptoKey.
  const name = schema
    .slice(Math.max(schema.lastIndexOf("."), schema.lastIndexOf("/")) + 1)
    .replace(/Input$/, "");
  return Object.keys(request).find((field) => field.toLowerCase() === name.toLowerCase());
}

/** Reads a field by its path: "cryptoKey.name". */
function readField(request: Members, path: string): unknown {
  return path.split(".").reduce((at: unknown, name) => (at as Members | undefined)?.[name], request);
}

/** A request as the document describes it. */
export interface HttpCall {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** JSON body; undefined if the call has none. */
  readonly body: Members | undefined;
}

/** Puts the fields of a request where the document says. */
export function toHttpCall({ path, method, operation }: Found, request: Members): HttpCall {
  const parameters = (operation.parameters ?? []).filter((one): one is Parameter => "name" in one);
  const rest = { ...request };
  const bodyField = findBodyField(operation, request);
  let target = path;
  const query = new URLSearchParams();
  for (const parameter of parameters) {
    const { name, in: place } = parameter;
    const pattern = findPattern(parameter);
    const field = pattern?.field ?? name;
    // The paths of several RPCs are one path in OpenAPI, and the first RPC names its parameters.
    const whole = readField(request, field) ?? (bodyField && readField(request, `${bodyField}.${field}`));
    if (whole === undefined) continue;
    delete rest[field];
    const text = pattern === undefined ? String(whole) : (pattern.take(String(whole)) ?? "some-id");
    if (place === "path") target = target.replace(`{${name}}`, encodeURIComponent(text));
    else query.append(name, text);
  }
  const whole = bodyField === undefined ? rest : (request[bodyField] as Members);
  return {
    method: method.toUpperCase(),
    target: query.size === 0 ? target : `${target}?${query}`,
    body: operation.requestBody === undefined ? undefined : whole,
  };
}

async function call(url: string, found: Found, request: Members, token?: string): Promise<Outcome> {
  const httpCall = toHttpCall(found, request);
  const { method, target, body: json } = httpCall;
  const [contentType = ""] = Object.keys(found.operation.requestBody?.content ?? {});
  const text = json && writeBody(contentType, json);
  const headers = {
    ...(json && { "content-type": contentType }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const response = await fetch(url + target, {
    method,
    headers,
    ...(text && { body: text }),
  });
  const mediaType = (response.headers.get("content-type") ?? "").split(";")[0] ?? "";
  const bytes =
    mediaType === "application/x-ndjson" ? Buffer.from(await readLine(response)) : await response.bytes();
  // Notes and tiles are not JSON.
  const body = mediaType.endsWith("json") ? JSON.parse(new TextDecoder().decode(bytes)) : undefined;
  const sent = contentType === "application/octet-stream" ? text : json;
  return { found, status: response.status, mediaType, body, bytes, sent, call: httpCall, headers };
}

/** Writes a body in the media type of the document: JSON, a form, or JSON as an example of raw bytes. */
export function writeBody(mediaType: string, body: Members): string {
  if (!mediaType.endsWith("form-urlencoded")) return JSON.stringify(body);
  return new URLSearchParams(Object.entries(body).map(([name, value]) => [name, String(value)])).toString();
}

/** How a path contains parts of one field. */
interface Pattern {
  readonly field: string;
  /** Takes the parameter out of the field's whole value. */
  take(whole: string): string | undefined;
  /** Puts the parameter into the value, which is undefined before its first part. */
  fill(whole: unknown, part: string): string;
}

/**
 * Reads the pattern of a path parameter from its description; undefined if the parameter is a whole field. In
 * "shelves/{name1}/books/{name2}", `name1` is the second part of the field `name`.
 */
export function findPattern({ name, in: place, description = "" }: Parameter): Pattern | undefined {
  const [, pattern] = /value of the field is `([^`]+)`/i.exec(description) ?? [];
  if (place !== "path" || pattern === undefined) return undefined;
  const index = pattern.split("/").indexOf(`{${name}}`);
  return {
    field: name.replace(/\d+$/, ""),
    take: (whole) => whole.split("/")[index],
    fill: (whole, part) =>
      String(whole ?? pattern)
        .split("/")
        .with(index, part)
        .join("/"),
  };
}

/** Reads the first line of a response that may never end. */
async function readLine(response: Response): Promise<string> {
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes("\n")) break;
  }
  return text.slice(0, text.indexOf("\n"));
}
