/** A request as a tree of values, which each language writes in its own way. */
import { type DescField, type DescMessage, isFieldSet, type Message, ScalarType } from "@bufbuild/protobuf";
import { toBase64 } from "../../../client/base64.ts";
import { shorten } from "../values.ts";
import { readText } from "./literals.ts";

export type Value =
  | { readonly kind: "message"; readonly desc: DescMessage; readonly fields: readonly FieldValue[] }
  | { readonly kind: "list"; readonly field: DescField; readonly items: readonly Value[] }
  | {
      readonly kind: "map";
      readonly field: DescField;
      readonly entries: readonly (readonly [Value, Value])[];
    }
  | { readonly kind: "text"; readonly text: string }
  /** A password, which a program reads from the environment. */
  | { readonly kind: "password" }
  /** Bytes that are readable UTF-8. */
  | { readonly kind: "text bytes"; readonly text: string }
  | { readonly kind: "bytes"; readonly base64: string }
  | { readonly kind: "number"; readonly digits: string; readonly isBigInt: boolean }
  | { readonly kind: "boolean"; readonly isTrue: boolean };

/** A field that is set. */
export interface FieldValue {
  readonly field: DescField;
  readonly value: Value;
}

/** @param isShort leaves out the middle of long values, for reading */
export function readRequest(desc: DescMessage, request: Message, isShort: boolean): Value {
  const limit = (text: string): string => (isShort ? shorten(text) : text);

  const readScalar = (value: unknown): Value => {
    if (typeof value === "string") return { kind: "text", text: limit(value) };
    if (typeof value === "boolean") return { kind: "boolean", isTrue: value };
    if (value instanceof Uint8Array) {
      const text = readText(value);
      return text === undefined
        ? { kind: "bytes", base64: limit(toBase64(value)) }
        : { kind: "text bytes", text: limit(text) };
    }
    return { kind: "number", digits: String(value), isBigInt: typeof value === "bigint" };
  };

  const readMessage = (message: DescMessage, value: unknown): Value => {
    // A message that is set is an object with a property for each of its fields.
    const properties = value as Message & Readonly<Record<string, unknown>>;
    const set = message.fields.filter((field) => isFieldSet(properties, field));
    const fields = set.map((field) => ({ field, value: readField(field, properties[field.localName]) }));
    return { kind: "message", desc: message, fields };
  };

  const readField = (field: DescField, value: unknown): Value => {
    if (field.name === "password") return { kind: "password" };
    if (field.fieldKind === "message") return readMessage(field.message, value);
    if (field.fieldKind === "list" && Array.isArray(value)) {
      const { message } = field;
      const items = value.map((item) => (message ? readMessage(message, item) : readScalar(item)));
      return { kind: "list", field, items };
    }
    if (field.fieldKind === "map") {
      const { message, mapKey } = field;
      const entries = Object.entries(value ?? {}).map(
        ([key, item]) =>
          [
            // In objects, all keys are texts.
            mapKey === ScalarType.STRING ? readScalar(key) : readScalar(Number(key)),
            message ? readMessage(message, item) : readScalar(item),
          ] as const,
      );
      return { kind: "map", field, entries };
    }
    return readScalar(value);
  };

  return readMessage(desc, request);
}
