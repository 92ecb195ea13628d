/** The API description from /openapi.json, with its references resolved. */
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

/** One operation with its location, references resolved. */
export interface Operation extends Omit<RawOperation, "parameters" | "responses"> {
  readonly verb: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly responses: Readonly<Record<string, Response>>;
  /** The searchable text, in lower case. */
  readonly text: string;
}

/** A service's operations, with its description. */
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
  /** Resolves a schema reference. */
  resolve(schema: Schema): Schema;
}

/**
 * Fetches the server's own API description.
 *
 * @throws Error if the server returns none
 */
export async function loadDocument(): Promise<ApiDocument> {
  const response = await fetch("/openapi.json");
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  // The server generates it from these types.
  return readDocument((await response.json()) as OpenApiDocument);
}

/** Parses a description and resolves the references that the page needs. */
export function readDocument({ info, tags, paths, components }: OpenApiDocument): ApiDocument {
  const resolve = <T extends object>(value: T | Reference): T => {
    if (!("$ref" in value)) return value;
    const [, , part = "", name = ""] = value.$ref.split("/");
    // A reference points to a component of the expected kind.
    return components[part as keyof typeof components][name] as T;
  };
  const operations = Object.entries(paths).flatMap(([path, verbs]) => {
    // QUERY operations duplicate others, which their services list.
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

/** An operation's display name: the name of its RPC. */
export function nameOperation(operation: Operation): string {
  return operation["x-grpc"].method.split("/")[1] ?? operation.operationId;
}

/** Whether a call is refused without a token. */
export function needsToken({ security }: Operation): boolean {
  return security.length > 0 && security.every((one) => Object.keys(one).length > 0);
}

/** Whether a token may be required, on this server or on one with different settings. */
export function takesToken({ security }: Operation): boolean {
  return security.some((one) => "bearer" in one);
}

/** Whether the body is a file. */
export function isUpload({ requestBody }: Operation): boolean {
  return Object.keys(requestBody?.content ?? {}).some(
    (type) => !/\/(json|x-www-form-urlencoded)$/.test(type),
  );
}

/** Whether an answer is a stream, which may never end. */
export function isStream({ responses }: Operation): boolean {
  return Object.keys(responses["200"]?.content ?? {}).includes("text/event-stream");
}

/** A named example of a body. */
export interface NamedExample {
  readonly name: string;
  readonly summary: string;
  readonly value: Json;
}

/** A body's examples. */
export function listExamples(content: Readonly<Record<string, MediaType>> | undefined): NamedExample[] {
  const medias = Object.values(content ?? {});
  // Calls that are described with forms accept JSON too, which our snippets send.
  const media = content?.["application/json"] ?? medias[0];
  if (media?.example !== undefined) return [{ name: "", summary: "", value: media.example }];
  return Object.entries(media?.examples ?? {}).map(([name, one]) => ({ name, ...one }));
}

/** A field of an example, and the call whose answer contains its value. */
export interface ExampleSource {
  /** The field's path in the request: "keyId". */
  readonly field: string;
  /** The path in the answer: "result.keyId". */
  readonly path: string;
  readonly operationId: string;
  readonly name: string;
}

/** @param chosen an example's name; by default, or if it does not exist, the first */
export function listSources(api: ApiDocument, operation: Operation, chosen: string): ExampleSource[] {
  const examples = operation["x-grpc"].examples ?? {};
  const links = examples[chosen] ?? Object.values(examples)[0] ?? {};
  return Object.entries(links).flatMap(([field, { answerOf, path }]) => {
    const found = api.operations.find((one) => Object.hasOwn(one["x-grpc"].examples ?? {}, answerOf));
    // The server may not serve the call that returns it.
    if (found === undefined) return [];
    return [{ field, path, operationId: found.operationId, name: nameOperation(found) }];
  });
}
