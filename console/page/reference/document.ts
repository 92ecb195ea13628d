/** The description of the REST calls, as /openapi.json has it, and its parts by reference. */
import type {
  Json,
  MediaType,
  OpenApiDocument,
  Parameter,
  Operation as RawOperation,
  Reference,
  Response,
  Schema,
} from "../../../src/openapi/document.ts";

/** One operation, with its place and its references resolved. */
export interface Operation extends Omit<RawOperation, "parameters" | "responses"> {
  readonly verb: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly responses: Readonly<Record<string, Response>>;
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

/** Reads the description that the server gives of itself. @throws an Error if the server gives none */
export async function loadDocument(): Promise<ApiDocument> {
  const response = await fetch("/openapi.json");
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  // The server writes it from these types.
  return readDocument((await response.json()) as OpenApiDocument);
}

/** Reads a description, and resolves the references that the page follows at once. */
export function readDocument({ info, tags, paths, components }: OpenApiDocument): ApiDocument {
  const resolve = <T extends object>(value: T | Reference): T => {
    if (!("$ref" in value)) return value;
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
