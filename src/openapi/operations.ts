/** Describes one call: one HTTP binding of one RPC. */
import { type DescField, type DescMethod, getOption } from "@bufbuild/protobuf";
import { qualifiedName } from "@bufbuild/protobuf/reflect";
import { Access } from "#gen/qsp/access_pb.ts";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import { type Example, type FilledExample, fillExample, type Json } from "../calls/example.ts";
import { findAccess, findReasons, type RestStyle, type ServiceProfiles } from "../calls/service-profile.ts";
import { streamFormats } from "../transcoding/rendering.ts";
import { isHttpBody, type Route } from "../transcoding/routes.ts";
import type { MediaType, Operation, Parameter, Reference, Response, Schema } from "./document.ts";
import { linkExamples } from "./example-links.ts";
import { describeFailures, errorNames } from "./failures.ts";
import { describePathParameters, describeQueryParameters } from "./parameters.ts";
import type { ApiPath } from "./paths.ts";
import { describeRawBytes, describeRequestBody, showValues } from "./request-body.ts";
import { isAlwaysThere, type Schemas } from "./schemas.ts";
import { type Describe, firstSentence, withSentences } from "./texts.ts";

/**
 * Which calls need a token: only those whose RPC requires one ("open"), or all that are not public ("token").
 */
export type AuthMode = "open" | "token";

export interface OperationDeps {
  readonly describe: Describe;
  readonly schemas: Schemas;
  readonly examples: readonly Example[];
  readonly answers: Readonly<Record<string, Json>>;
  readonly auth: AuthMode;
  readonly profiles: ServiceProfiles;
}

/** Ways to authenticate, by name. */
export const securitySchemes = {
  bearer: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "A token issued by this server, signed with ML-DSA-65.",
  },
  basic: { type: "http", scheme: "basic", description: "The ID and the secret of an OAuth 2 client." },
} as const;

/** Parameters that many calls share. The ones under "own" belong to calls of any style. */
export const sharedParameters: Readonly<Record<RestStyle, Readonly<Record<string, Parameter>>>> = {
  own: {
    IdempotencyKey: {
      name: "Idempotency-Key",
      in: "header",
      required: false,
      description:
        "Makes a call that changes data safe to retry. The same key with the same request returns the first response " +
        "for 24 hours. The same key with a different request is refused.",
      // Printable ASCII (src/server/interceptors/idempotency.ts).
      schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[ -~]*$" },
    },
    IfNoneMatch: {
      name: "If-None-Match",
      in: "header",
      required: false,
      description: "An `ETag` of an earlier response. If the content is the same, the response is 304.",
      schema: { type: "string" },
    },
    Range: {
      name: "Range",
      in: "header",
      required: false,
      description:
        "The bytes to return, as in `bytes=0-1023`. Without `Range`, the response is the whole content.",
      schema: { type: "string" },
    },
  },
  oauth: {
    // Every call accepts it, but only calls with two media types declare it. They need an optional parameter:
    // without one, the modules that openapi-python-client 0.29 generates for them use a name that they do not
    // import (Unset).
    RequestId: {
      name: "x-request-id",
      in: "header",
      required: false,
      description:
        "Identifies the call in the response and in the server's logs: up to 128 letters, digits, `_`, `.`, `:` and `-`. The server replaces an invalid ID.",
      schema: { type: "string" },
    },
  },
  // System parameters that change a response (src/transcoding/system-parameters.ts).
  google: {
    GoogleAlt: {
      name: "$alt",
      in: "query",
      required: false,
      description: "Whether the response contains enums as names or as numbers. The schemas describe names.",
      schema: { type: "string", enum: ["json", "json;enum-encoding=int"] },
    },
    GooglePrettyPrint: {
      name: "$prettyPrint",
      in: "query",
      required: false,
      description: "Whether each member of the response is on its own line.",
      schema: { type: "boolean" },
    },
  },
};

function referTo(names: readonly string[]): Reference[] {
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}

/**
 * Describes one HTTP binding.
 *
 * @param binding index of the RPC's binding, from 0
 */
export function describeOperation(
  route: Route,
  path: ApiPath,
  binding: number,
  deps: OperationDeps,
): Operation {
  const { describe, schemas, examples, auth, profiles } = deps;
  const { method, kind } = route.spec;
  const style = findStyle(method, profiles);
  const stated = findAccess(method, profiles);
  const isStream = streams(kind);
  const isRepeatable = getOption(method, idempotency_key);
  const isRanged = findReasons(method, profiles).includes("RANGE_NOT_SATISFIABLE");
  const isTagged = route.httpMethod === "GET" && (isRanged || !isStream);
  const text = describe(method);
  const stored = examples.filter(({ rpc }) => rpc === qualifiedName(method));
  const links = linkExamples(stored, examples);
  const own = stored.map((one) => ({ ...one, request: fillExample(one.request, ({ sample }) => sample) }));
  const parameters = [
    ...describePathParameters(path, schemas, own[0]?.request),
    ...describeQueryParameters(route, schemas, own[0]?.request),
    ...referTo([
      ...(isRepeatable ? ["IdempotencyKey"] : []),
      ...(isTagged ? ["IfNoneMatch"] : []),
      ...(isRanged ? ["Range"] : []),
      ...(style === "own" ? [] : Object.keys(sharedParameters[style])),
    ]),
  ];
  const shape = {
    method,
    style,
    profiles,
    streams: isStream,
    isRepeatable,
    hasBody: route.body.kind !== "none",
    isQuery: route.httpMethod === "QUERY",
    hasPathFields: route.variables.length > 0,
    wantsToken: wantsToken(stated, auth),
  };
  return {
    operationId: nameOperation(method, binding),
    tags: [method.parent.typeName],
    summary: firstSentence(text),
    description: withSentences(text, [...sayAccess(stated, auth), ...(isStream ? [streamSentence] : [])]),
    deprecated: method.deprecated || undefined,
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: describeRequestBody(route, schemas, own),
    responses: {
      ...describeSuccess(describeAnswer(route, deps, own), isTagged, isRanged),
      ...describeFailures(shape),
    },
    "x-grpc": { ...describeGrpc(route, own[0]?.request), ...(links && { examples: links }) },
    security: findReasons(method, profiles).includes("CLIENT_INVALID")
      ? [{ basic: [] }, {}]
      : describeSecurity(stated, auth),
  };
}

function nameOperation({ parent, name }: DescMethod, binding: number): string {
  const id = `${parent.typeName.replaceAll(".", "_")}_${name}`;
  return binding === 0 ? id : `${id}_${binding + 1}`;
}

/** The conventions of a call's service. */
export function findStyle({ parent }: DescMethod, profiles: ServiceProfiles): RestStyle {
  return profiles[parent.typeName]?.restStyle ?? "own";
}

function wantsToken(stated: Access, auth: AuthMode): boolean {
  const isAlways = stated === Access.TOKEN || stated === Access.DEVICE_TOKEN;
  return isAlways || (auth === "token" && stated !== Access.PUBLIC);
}

function describeSecurity(stated: Access, auth: AuthMode): Operation["security"] {
  if (wantsToken(stated, auth)) return [{ bearer: [] }];
  // A token that is not required is harmless: the same client works with a server that requires it.
  return stated === Access.PUBLIC ? [] : [{}, { bearer: [] }];
}

const accessSentences: Partial<Record<Access, string>> = {
  [Access.TOKEN]: "the call is for users, and always requires a token",
  [Access.AUTHENTICATED]: "the call is for users",
  [Access.DEVICE]: "the call is for users and devices",
  [Access.DEVICE_TOKEN]: "the call is for devices, and always requires a device token",
  [Access.AUDITOR]: "the call is for users with the role auditor or admin",
  [Access.ADMIN]: "the call is for users with the role admin",
};

function sayAccess(stated: Access, auth: AuthMode): string[] {
  const sentence = accessSentences[stated];
  return wantsToken(stated, auth) && sentence !== undefined ? [sentence] : [];
}

const streamSentence =
  "the response is a stream; if it fails after it has started, its last part is the error";

/** Returns whether a response is a stream of messages. */
function streams(kind: Route["spec"]["kind"]): boolean {
  return kind === "server_streaming" || kind === "bidi_streaming";
}

/** The gRPC form of the call. It includes the example message if no body shows all of it. */
function describeGrpc({ spec, body, variables }: Route, request: Json | undefined): Operation["x-grpc"] {
  const method = `${spec.method.parent.typeName}/${spec.method.name}`;
  const isBody = body.kind === "all" && variables.length === 0;
  return isBody || request === undefined ? { method } : { method, request };
}

/** Entity tags and ranges (src/http). */
function describeSuccess(answer: Response, isTagged: boolean, isRanged: boolean): Operation["responses"] {
  if (!isTagged) return { "200": answer };
  const tag = { ETag: describeHeader("Identifies the content, for `If-None-Match`.") };
  const range = {
    "Content-Range": describeHeader("The bytes in the response, and the length of the content."),
  };
  const description = "The bytes that `Range` requests.";
  return {
    "200": { ...answer, headers: tag },
    ...(isRanged && { "206": { ...answer, description, headers: { ...tag, ...range } } }),
    "304": { description: "Not Modified: the content has the entity tag in `If-None-Match`.", headers: tag },
  };
}

function describeHeader(description: string) {
  return { description, schema: { type: "string" } } as const;
}

function describeAnswer(
  route: Route,
  { schemas, describe, answers, profiles }: OperationDeps,
  own: readonly FilledExample[],
): Response {
  const { method, kind } = route.spec;
  const { output } = method;
  const values = own.flatMap(({ name, summary, answer: value = answers[name] }) =>
    value === undefined ? [] : [{ name, summary, value }],
  );
  const field = route.responseField;
  const description = `${firstSentence(describe(output)) ?? "The response"}.`;
  if (isHttpBody(field === undefined ? output : field.message)) {
    const { mediaType, schema } = describeRawBytes(field);
    // JSON has no raw bytes, and neither has docs/answers.json.
    const note = schema.format === "binary" ? " The example is in base64, the response is not." : "";
    return { description: description + note, content: { [mediaType]: { schema, ...showValues(values) } } };
  }
  const schema = field === undefined ? schemas.ofMessage(output, "response") : describePart(field, schemas);
  return {
    description,
    content: !streams(kind)
      ? { "application/json": { schema, ...showValues(values) } }
      : describeStream(schema, findStyle(method, profiles), values[0]?.value),
  };
}

/** One field as the whole response. An unset field is null. */
function describePart(field: DescField, schemas: Schemas): Schema {
  const part = schemas.ofField(field, "response");
  return isAlwaysThere(field) ? part : { anyOf: [part, { type: "null" }] };
}

/**
 * A server stream in its formats, the default first (src/transcoding/rendering.ts). It omits the array: many
 * streams do not end, and generated clients would wait for the end.
 */
function describeStream(
  message: Schema,
  style: RestStyle,
  part: Json | undefined,
): Readonly<Record<string, MediaType>> {
  const error: Schema = { $ref: `#/components/schemas/${errorNames[style]}` };
  const perLine: MediaType = {
    schema: { anyOf: [message, error], description: "Form of each line." },
    ...(part !== undefined && { example: part }),
  };
  const perEvent: MediaType = {
    schema: {
      type: "string",
      description: "One JSON text in the data of each event. An error is an event named `error`.",
    },
  };
  const types = [...streamFormats.keys()].filter((type) => type !== "application/json");
  return Object.fromEntries(types.map((type) => [type, type.startsWith("text/") ? perEvent : perLine]));
}
