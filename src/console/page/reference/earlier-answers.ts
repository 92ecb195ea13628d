/** Values from the answers of this page's calls, for the examples of other calls. They last as long as the page. */
import {
  type ApiDocument,
  type ExampleLink,
  type Json,
  listExamples,
  nameOperation,
  type Operation,
} from "./document.ts";

/** A field of an example whose value is from the answer to another call. */
export interface LinkedField extends ExampleLink {
  /** The path of the field in the request: "keyId". */
  readonly field: string;
  /** Undefined until that call has been made. */
  readonly value: string | undefined;
}

/** By example and path. Values of other types than text are in no example. */
const values = new Map<string, string>();

const nameValue = ({ answerOf, path }: ExampleLink): string => `${answerOf} ${path}`;

/** The name of an example, as others refer to it. @param chosen "" if the reader has no choice */
function findExample(operation: Operation, chosen: string): string | undefined {
  const names = Object.keys(operation["x-grpc"].examples ?? {});
  return names.find((name) => name === chosen) ?? names[0];
}

/** Keeps of an answer what the examples of other calls take, and nothing else. */
export function keepAnswer(api: ApiDocument, operation: Operation, chosen: string, answer: Json): void {
  const name = findExample(operation, chosen);
  for (const link of api.operations.flatMap((one) => Object.values(one["x-grpc"].examples ?? {}))) {
    for (const field of Object.values(link)) {
      const value = field.answerOf === name ? readPath(answer, field.path) : undefined;
      if (typeof value === "string") values.set(nameValue(field), value);
    }
  }
}

/** The fields of an example that take values from other answers. */
export function listLinkedFields(operation: Operation, chosen: string): LinkedField[] {
  const name = findExample(operation, chosen);
  const fields = name === undefined ? {} : operation["x-grpc"].examples?.[name];
  return Object.entries(fields ?? {}).map(([field, link]) => ({
    ...link,
    field,
    value: values.get(nameValue(link)),
  }));
}

/** The call that an example is of, for a reader who has yet to make it. */
export interface ExampleSource {
  readonly operationId: string;
  readonly name: string;
  /** The example to choose, if the call has several. */
  readonly summary: string | undefined;
}

/** Finds the call of an example. */
export function findSource(api: ApiDocument, { answerOf }: ExampleLink): ExampleSource | undefined {
  const found = api.operations.find((one) => Object.hasOwn(one["x-grpc"].examples ?? {}, answerOf));
  if (found === undefined) return undefined;
  const at = listExamples(found.requestBody?.content).findIndex(({ name }) => name === answerOf);
  // The first is there without a choice.
  const summary = at > 0 ? listExamples(found.requestBody?.content)[at]?.summary : undefined;
  return { operationId: found.operationId, name: nameOperation(found), summary };
}

/** Reads a value: "result.keyId", "signers.0". */
export function readPath(value: Json | undefined, path: string): Json | undefined {
  return path.split(".").reduce<Json | undefined>((at, name) => {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    return Array.isArray(at) ? at[Number(name)] : at[name];
  }, value);
}

/** The same JSON with another value at a path that it has. */
export function withPath(value: Json, path: string, text: string): Json {
  const [name = "", ...rest] = path.split(".");
  const change = (part: Json): Json => (rest.length === 0 ? text : withPath(part, rest.join("."), text));
  if (Array.isArray(value)) return value.map((part, i) => (String(i) === name ? change(part) : part));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, key === name ? change(part) : part]),
  );
}
