/** Describes the request fields in the body. */
import { type DescField, getOption } from "@bufbuild/protobuf";
import { media_type } from "#gen/qsp/media_type_pb.ts";
import type { FilledExample, Json } from "../calls/example.ts";
import { isHttpBody, type Route } from "../transcoding/routes.ts";
import type { MediaType, RequestBody, Schema } from "./document.ts";
import { valueAt } from "./parameters.ts";
import type { Schemas } from "./schemas.ts";

/** Describes the body of a route; undefined if it has none. */
export function describeRequestBody(
  route: Route,
  schemas: Schemas,
  examples: readonly FilledExample[],
): RequestBody | undefined {
  const { body, spec } = route;
  const { input } = spec.method;
  if (body.kind === "none") return undefined;
  const message = body.kind === "all" ? input : body.field.message;
  // The server accepts every type.
  if (isHttpBody(message)) {
    const { mediaType, schema } = describeRawBytes(body.kind === "field" ? body.field : undefined);
    return { required: true, content: { [mediaType]: { schema } } };
  }
  const inPath = route.variables.map(({ path }) => path);
  // RFC 6749, section 3.2. The server accepts JSON too, but generated clients that choose JSON drop the form.
  const isForm = route.style === "oauth";
  const describeWhole = (): Schema => {
    if (isForm) return schemas.ofForm(input);
    return inPath.length === 0 ? schemas.ofMessage(input, "request") : schemas.ofRemainder(input, inPath);
  };
  const whole = describeWhole();
  const schema = body.kind === "all" ? whole : schemas.ofField(body.field, "text");
  const values = examples.flatMap(({ name, summary, request }) => {
    const value = body.kind === "all" ? withoutFields(request, inPath) : valueAt(request, [body.field]);
    return value === undefined ? [] : [{ name, summary, value }];
  });
  if (spec.kind === "unary" || spec.kind === "server_streaming") {
    const required =
      body.kind === "all"
        ? isDemanding(whole, schemas) || schemas.isEmptyRefused(input)
        : schemas.isRequired(input, body.field);
    const mediaType = isForm ? "application/x-www-form-urlencoded" : "application/json";
    return { required, content: { [mediaType]: { schema, ...showValues(values) } } };
  }
  return {
    required: false,
    content: {
      "application/x-ndjson": { schema: { ...schema, description: "Form of each line." } },
      "application/json": { schema: { type: "array", items: schema } },
    },
  };
}

/** A google.api.HttpBody as a whole body: of the type that its field declares, or of any type. */
export function describeRawBytes(field: DescField | undefined): {
  readonly mediaType: string;
  readonly schema: Schema;
} {
  const mediaType = field === undefined ? "" : getOption(field, media_type);
  if (mediaType === "") return { mediaType: "*/*", schema: {} };
  if (mediaType.endsWith("json")) return { mediaType, schema: {} };
  // Version 3.1 has no keyword for unencoded bytes. Generators made for version 3.0 read the format.
  const isText = mediaType.startsWith("text/");
  return { mediaType, schema: { type: "string", ...(!isText && { format: "binary" }) } };
}

/** Returns whether a message has a required field. */
function isDemanding(schema: Schema, schemas: Schemas): boolean {
  const named = schema.$ref?.replace("#/components/schemas/", "");
  const object = named === undefined ? schema : schemas.components.get(named);
  return (object?.required ?? []).length > 0;
}

/** Returns a single value as the example, or several values by name. */
export function showValues(
  values: readonly { name: string; summary: string; value: Json }[],
): Omit<MediaType, "schema"> {
  if (values.length < 2) return values[0] === undefined ? {} : { example: values[0].value };
  return {
    examples: Object.fromEntries(values.map(({ name, summary, value }) => [name, { summary, value }])),
  };
}

/** Removes the request fields that are in the path. */
function withoutFields(request: Json, paths: readonly (readonly DescField[])[]): Json {
  return Object.fromEntries(
    Object.entries(request as object).flatMap(([name, value]): [string, Json][] => {
      const inside = paths.filter(([first]) => first?.jsonName === name).map((path) => path.slice(1));
      if (inside.some(({ length }) => length === 0)) return [];
      return [[name, inside.length === 0 ? value : withoutFields(value, inside)]];
    }),
  );
}
