/** Keeps the digits of integers that a double would round. */
import { ScalarType } from "@bufbuild/protobuf";

/** Replaces a bare number that a double cannot hold exactly in a parsed value. */
export class UnsafeInteger {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

/** A reviver for JSON.parse that replaces such a number with an UnsafeInteger. */
export function markUnsafeInteger(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  return new UnsafeInteger(context?.source ?? String(value));
}

/** The number that JSON.parse returns without the reviver. */
export function roundInteger(json: unknown): unknown {
  return json instanceof UnsafeInteger ? Number(json.source) : json;
}

/** Explains why a value would lose digits in a scalar type; undefined if it would not. */
export function whyUnsafe(scalar: ScalarType, json: unknown): string | undefined {
  if (!(json instanceof UnsafeInteger)) return undefined;
  if (scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT) return undefined;
  return `${json.source} is beyond 2^53 - 1 and would lose digits as a JSON number; write it as a string`;
}
