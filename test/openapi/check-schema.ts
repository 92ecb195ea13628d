/** Checks JSON against the schemas of a document, with Ajv. */
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { OpenApiDocument, Schema } from "../../src/openapi/document.ts";

/** Returns what is wrong with a value; empty if nothing is. */
export type CheckSchema = (pointer: readonly string[], value: unknown) => string[];

/**
 * Creates a check of values against a part of the document, such as ["components", "schemas", "ErrorResponse"].
 *
 * The check rejects properties that the schema does not mention, so it finds fields that the document forgot.
 */
export function createCheck(document: OpenApiDocument): CheckSchema {
  // Not strict, because "int32" and others are OpenAPI formats, not assertions.
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addFormat("uint64", true);
  ajv.addSchema(closeObjects(document), "document");
  return (pointer, value) => {
    const escaped = pointer.map((part) =>
      encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")),
    );
    const validate = ajv.getSchema(`document#/${escaped.join("/")}`);
    if (validate === undefined) throw new Error(`the document has nothing at ${pointer.join(" ")}`);
    validate(value);
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  };
}

function closeObjects<T>(part: T): T {
  if (typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map(closeObjects) as T;
  const closed = Object.fromEntries(Object.entries(part).map(([name, value]) => [name, closeObjects(value)]));
  const { type, properties, additionalProperties } = part as Schema;
  const isOpen = type === "object" && properties !== undefined && additionalProperties === undefined;
  return (isOpen ? { ...closed, additionalProperties: false } : closed) as T;
}
