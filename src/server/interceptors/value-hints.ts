/** Suggests a value if a field has none of the values that its proto rule lists. */
import type { DescMessage, Message } from "@bufbuild/protobuf";
import {
  isReflectList,
  isReflectMap,
  isReflectMessage,
  type Path,
  reflect,
} from "@bufbuild/protobuf/reflect";
import { listAccepted } from "../../calls/accepted-values.ts";
import { findNearest } from "../../suggest.ts";

/**
 * Suggests a value.
 *
 * @param allowed the values that the rule lists
 * @returns a clause for an error message; undefined if no value is similar
 */
export type HintValue = (given: string, allowed: readonly string[]) => string | undefined;

/** Longer values get no hint, so that the search stays short. */
const maxValueCharacters = 64;

/** Suggests the nearest allowed value. */
const hintNearest: HintValue = (given, allowed) => {
  const nearest = findNearest(given, allowed);
  return nearest === undefined ? undefined : `did you mean "${nearest}"?`;
};

/**
 * Finds a hint for a broken `string.in` rule.
 *
 * @param path the field that breaks it
 * @param hint can suggest values by more than their spelling
 */
export function findValueHint(
  input: DescMessage,
  message: Message,
  path: Path,
  hint: HintValue = () => undefined,
): string | undefined {
  const given = readAt(input, message, path);
  if (typeof given !== "string" || given.length > maxValueCharacters) return undefined;
  const allowed = listAllowed(path);
  return hint(given, allowed) ?? hintNearest(given, allowed);
}

function readAt(input: DescMessage, message: Message, path: Path): unknown {
  let value: unknown = reflect(input, message);
  for (const part of path) {
    if (part.kind === "field" && isReflectMessage(value)) value = value.get(part);
    else if (part.kind === "list_sub" && isReflectList(value)) value = value.get(part.index);
    else if (part.kind === "map_sub" && isReflectMap(value)) value = value.get(part.key);
    else return undefined;
  }
  return value;
}

/** Reads the allowed values from the rule; an element of a list or map inherits the rule of its field. */
function listAllowed(path: Path): readonly string[] {
  const field = path.findLast((part) => part.kind === "field");
  return field === undefined ? [] : listAccepted(field);
}
