/** JSON forms of the well-known types (protobuf.dev/programming-guides/json). */
import type { DescMessage } from "@bufbuild/protobuf";
import type { Schema } from "./document.ts";

const schemas: Readonly<Record<string, Schema>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": { type: "string", pattern: "^-?[0-9]+(\\.[0-9]{1,9})?s$" },
  "google.protobuf.FieldMask": { type: "string" },
  "google.protobuf.Struct": { type: "object", additionalProperties: true },
  "google.protobuf.Value": {},
  "google.protobuf.ListValue": { type: "array", items: {} },
  "google.protobuf.Empty": { type: "object", additionalProperties: false },
  "google.protobuf.Any": {
    type: "object",
    properties: { "@type": { type: "string" } },
    required: ["@type"],
    additionalProperties: true,
  },
};

/** Returns the schema of a well-known type with its own JSON form; undefined for all other types. */
export function wellKnownSchema({ typeName }: DescMessage): Schema | undefined {
  return Object.hasOwn(schemas, typeName) ? schemas[typeName] : undefined;
}
