/** The description of the REST calls, as /openapi.json has it, and its parts by reference. */

/** A value of JSON. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** Where a field of an example takes its value from. */
export interface ExampleLink {
  /** The name of another example. */
  readonly answerOf: string;
  /** The path in its answer: "result.keyId". */
  readonly path: string;
}

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly Json[];
  readonly format?: string;
  readonly contentEncoding?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
}

export interface MediaType {
  readonly schema: Schema;
  readonly example?: Json;
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: Json }>>;
}

export interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly description?: string;
  readonly required?: boolean;
  readonly schema?: Schema;
  readonly example?: Json;
}

export interface Response {
  readonly $ref?: string;
  readonly description: string;
  readonly content?: Readonly<Record<string, MediaType>>;
}

/** One operation as the document has it. */
interface RawOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> };
  readonly responses: Readonly<Record<string, Response>>;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly "x-grpc": {
    readonly method: string;
    readonly request?: Json;
    /** By the names of its examples, and there by fields: whose answers have the values. */
    readonly examples?: Readonly<Record<string, Readonly<Record<string, ExampleLink>>>>;
  };
}

/** One operation, with its place and its references resolved. */
export interface Operation extends RawOperation {
  readonly verb: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** The text that a search reads, in lower case. */
  readonly text: string;
}

/** The operations of a service, with its description. */
export interface Group {
  readonly name: string;
  readonly description: string;
  readonly operations: readonly Operation[];
}

/** The whole document. */
export interface ApiDocument {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  readonly groups: readonly Group[];
  readonly operations: readonly Operation[];
  /** Finds what a schema refers to. */
  resolve(schema: Schema): Schema;
}

export interface RawDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, RawOperation>>>>;
  readonly components: Readonly<
    Record<"schemas" | "responses" | "parameters", Readonly<Record<string, unknown>>>
  >;
}

/** Reads the description that the server gives of itself. @throws an Error if the server gives none */
export async function loadDocument(): Promise<ApiDocument> {
  const response = await fetch("/openapi.json");
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  // The server writes it from the types of src/openapi/document.ts.
  return readDocument((await response.json()) as RawDocument);
}

/** Reads a description, and resolves the references that the page follows at once. */
export function readDocument({ info, tags, paths, components }: RawDocument): ApiDocument {
  const resolve = <T extends { readonly $ref?: string }>(value: T): T => {
    if (value.$ref === undefined) return value;
    const [, , part = "", name = ""] = value.$ref.split("/");
    // A reference names a part of the kind of its place.
    return components[part as keyof typeof components][name] as T;
  };
  const operations = Object.entries(paths).flatMap(([path, verbs]) => {
    // The calls by QUERY repeat others, and their services name them.
    const own = Object.entries(verbs).filter(([verb]) => !verb.startsWith("x-"));
    return own.map(([verb, raw]): Operation => {
      const responses = Object.entries(raw.responses).map(([status, one]) => [status, resolve(one)]);
      return {
        ...raw,
        verb: verb.toUpperCase(),
        path,
        parameters: (raw.parameters ?? []).map(resolve),
        responses: Object.fromEntries(responses),
        text: [raw["x-grpc"].method, verb, path, raw.description].join(" ").toLowerCase(),
      };
    });
  });
  const groups = tags.map(({ name, description }) => ({
    name,
    description,
    operations: operations.filter((one) => one.tags.includes(name)),
  }));
  return { ...info, groups, operations, resolve };
}

/** The name of an operation for people: that of its RPC. */
export function nameOperation(operation: Operation): string {
  return operation["x-grpc"].method.split("/")[1] ?? operation.operationId;
}

/** Tells whether a call is refused without a token. */
export function needsToken({ security }: Operation): boolean {
  return security.length > 0 && security.every((one) => Object.keys(one).length > 0);
}

/** Tells whether an answer is a stream, which may not end. */
export function isStream({ responses }: Operation): boolean {
  return Object.keys(responses["200"]?.content ?? {}).includes("text/event-stream");
}

/** An example of a body, with its name. */
export interface NamedExample {
  readonly name: string;
  readonly summary: string;
  readonly value: Json;
}

/** The examples of a body. */
export function listExamples(content: Readonly<Record<string, MediaType>> | undefined): NamedExample[] {
  const medias = Object.values(content ?? {});
  // A call may take several types; our own snippets send JSON, which all take.
  const media = content?.["application/json"] ?? medias[0];
  if (media?.example !== undefined) return [{ name: "", summary: "", value: media.example }];
  return Object.entries(media?.examples ?? {}).map(([name, one]) => ({ name, ...one }));
}
