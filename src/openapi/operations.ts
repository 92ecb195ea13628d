/** Describes one call: one HTTP binding of one RPC. */
import { type DescField, type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Access, access } from "#gen/qsp/access_pb.ts";
import { type Example, fillExample } from "../protocol/example.ts";
import { streamFormats } from "../transcoding/rendering.ts";
import { isHttpBody, type Route } from "../transcoding/routes.ts";
import type { MediaType, Operation, Response, Schema } from "./document.ts";
import { describeFailures, errorName } from "./failures.ts";
import { findFullName } from "./names.ts";
import { describePathParameters, describeQueryParameters } from "./parameters.ts";
import type { ApiPath } from "./paths.ts";
import { describeRequestBody } from "./request-body.ts";
import { isAlwaysThere, type Schemas } from "./schemas.ts";
import { type Describe, firstSentence, withSentences } from "./texts.ts";

/** Whether calls need a token: only where an RPC requires one ("open"), or all that are not public ("token"). */
export type AuthMode = "open" | "token";

/** The inputs for the description of operations. */
export interface OperationDeps {
  readonly describe: Describe;
  readonly schemas: Schemas;
  readonly examples: readonly Example[];
  readonly auth: AuthMode;
}

/** The name of the security scheme of tokens. */
export const schemeName = "bearer";

/** The name of the parameter that makes a call repeatable. */
export const idempotencyKeyName = "IdempotencyKey";

/** @param binding the index of the binding of the RPC, from 0. */
export function describeOperation(
  route: Route,
  path: ApiPath,
  binding: number,
  deps: OperationDeps,
): Operation {
  const { describe, schemas, examples, auth } = deps;
  const { method, kind } = route.spec;
  const streams = kind === "server_streaming" || kind === "bidi_streaming";
  const isRepeatable = kind === "unary" && mayChange(method);
  const text = describe(method);
  const own = examples
    .filter(({ rpc }) => rpc === findFullName(method))
    .map((one) => ({ ...one, request: fillExample(one.request, ({ sample }) => sample) }));
  const parameters = [
    ...describePathParameters(path, schemas, own[0]?.request),
    ...describeQueryParameters(route, schemas, own[0]?.request),
    ...(isRepeatable ? [{ $ref: `#/components/parameters/${idempotencyKeyName}` }] : []),
  ];
  const shape = {
    method,
    streams,
    isRepeatable,
    hasBody: route.body.kind !== "none",
    hasPathFields: route.variables.length > 0,
    wantsToken: wantsToken(method, auth),
  };
  return {
    operationId: nameOperation(method, binding),
    tags: [method.parent.typeName],
    summary: firstSentence(text),
    description: withSentences(text, [...sayAccess(method, auth), ...sayStream(streams)]),
    deprecated: method.deprecated || undefined,
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: describeRequestBody(route, schemas, own),
    responses: { "200": describeAnswer(route, deps, streams), ...describeFailures(shape, describe) },
    security: describeSecurity(method, auth),
  };
}

function nameOperation({ parent, name }: DescMethod, binding: number): string {
  const id = `${parent.typeName.replaceAll(".", "_")}_${name}`;
  return binding === 0 ? id : `${id}_${binding + 1}`;
}

/** As src/server/interceptors/idempotency.ts decides. */
function mayChange({ idempotency }: DescMethod): boolean {
  return idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

function wantsToken(method: DescMethod, auth: AuthMode): boolean {
  const stated = getOption(method, access);
  return stated === Access.TOKEN || (auth === "token" && stated !== Access.PUBLIC);
}

function describeSecurity(method: DescMethod, auth: AuthMode): Operation["security"] {
  if (wantsToken(method, auth)) return [{ [schemeName]: [] }];
  // A token that is not required does no harm: the same client works with a server that requires it.
  return getOption(method, access) === Access.PUBLIC ? [] : [{}, { [schemeName]: [] }];
}

const accessSentences: Partial<Record<Access, string>> = {
  [Access.TOKEN]: "the call is for users, and always needs a token",
  [Access.AUTHENTICATED]: "the call is for users",
  [Access.DEVICE]: "the call is for users and devices",
  [Access.AUDITOR]: "the call is for users of the roles auditor and admin",
  [Access.ADMIN]: "the call is for users of the role admin",
};

function sayAccess(method: DescMethod, auth: AuthMode): string[] {
  const sentence = accessSentences[getOption(method, access)];
  return wantsToken(method, auth) && sentence !== undefined ? [sentence] : [];
}

function sayStream(streams: boolean): string[] {
  if (!streams) return [];
  return ["the answer continues while there are more messages; an error after its start is its last part"];
}

function describeAnswer(route: Route, { schemas, describe }: OperationDeps, streams: boolean): Response {
  const { output } = route.spec.method;
  const field = route.responseField;
  const description = `${firstSentence(describe(output)) ?? "The answer"}.`;
  if (isHttpBody(field === undefined ? output : field.message))
    return { description, content: { "*/*": { schema: {} } } };
  const schema = field === undefined ? schemas.ofMessage(output, "response") : describePart(field, schemas);
  return { description, content: streams ? describeStream(schema) : { "application/json": { schema } } };
}

/** One field as the whole answer. An unset field is null. */
function describePart(field: DescField, schemas: Schemas): Schema {
  const part = schemas.ofField(field, "response");
  return isAlwaysThere(field) ? part : { anyOf: [part, { type: "null" }] };
}

/** A server stream in each of its formats, the default first (src/transcoding/rendering.ts). */
function describeStream(message: Schema): Readonly<Record<string, MediaType>> {
  const error: Schema = { $ref: `#/components/schemas/${errorName}` };
  const each: Schema = { anyOf: [message, error] };
  const forms: Readonly<Record<string, Schema>> = {
    "application/json": { type: "array", items: each },
    "text/event-stream": { type: "string", description: "Contains one JSON text in the data of each event." },
  };
  const perLine: Schema = { ...each, description: "Describes each line." };
  return Object.fromEntries(
    [...streamFormats.keys()].map((type) => [type, { schema: forms[type] ?? perLine }]),
  );
}
