/** Reads size limits from proto rules (buf/validate/validate.proto). */
import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import {
  type FieldRules,
  field as fieldRules,
  Ignore,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { refuseField } from "../errors.ts";

/** The size limits of a field's values. Infinity if the rules set no limit. */
export interface SizeRules {
  /** Elements of a list, or entries of a map. */
  readonly maxItems: number;
  /** Characters of a text: Unicode code points. */
  readonly maxCharacters: number;
}

const unbounded: SizeRules = { maxItems: Infinity, maxCharacters: Infinity };
const known = new WeakMap<DescField, SizeRules>();

/** Reads the rules of a field, once. */
export function findSizeRules(field: DescField): SizeRules {
  return known.getOrInsertComputed(field, computeSizeRules);
}

function computeSizeRules(field: DescField): SizeRules {
  return hasOption(field, fieldRules) ? readSizes(getOption(field, fieldRules)) : unbounded;
}

function readSizes({ ignore, type }: FieldRules): SizeRules {
  if (ignore === Ignore.ALWAYS) return unbounded;
  // Zero means that the rule is not set.
  const orUnbounded = (max: bigint): number => (max > 0n ? Number(max) : Infinity);
  switch (type.case) {
    case "repeated":
      return { ...unbounded, maxItems: orUnbounded(type.value.maxItems) };
    case "map":
      return { ...unbounded, maxItems: orUnbounded(type.value.maxPairs) };
    case "string":
      return { ...unbounded, maxCharacters: orUnbounded(type.value.maxLen) };
    default:
      return unbounded;
  }
}

/** Reports that a text is too long, in the validator's words. */
export function whyTooLong(field: DescField): string {
  return `must be at most ${findSizeRules(field).maxCharacters} characters`;
}

/** Refuses a list or map with more elements than its rules allow, in the validator's words. */
export function itemsTooMany(field: DescField, place: string): Error {
  return refuseField(place, whyTooMany(field));
}

/** Reports that a list or map has too many elements, in the validator's words. */
export function whyTooMany(field: DescField): string {
  const max = findSizeRules(field).maxItems;
  return field.fieldKind === "map"
    ? `map must be at most ${max} entries`
    : `must contain no more than ${max} item(s)`;
}
