/** Reads how many elements the rules of a proto allow a list or a map to have (buf/validate/validate.proto). */
import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { field as fieldRules, Ignore } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { refuseField } from "../errors.ts";

const known = new WeakMap<DescField, number>();

/** Tells how many elements a field may have; Infinity if its rules do not say. */
export function maxItemsOf(field: DescField): number {
  let max = known.get(field);
  if (max === undefined) {
    max = readMaxItems(field);
    known.set(field, max);
  }
  return max;
}

function readMaxItems(field: DescField): number {
  if (!hasOption(field, fieldRules)) return Infinity;
  const { ignore, type } = getOption(field, fieldRules);
  if (ignore === Ignore.ALWAYS) return Infinity;
  const max = type.case === "repeated" ? type.value.maxItems : type.case === "map" ? type.value.maxPairs : 0n;
  return max > 0n ? Number(max) : Infinity;
}

/** Refuses a list or a map with more elements than its rules allow, in the words of the validator. */
export function refuseItems(field: DescField, place: string): Error {
  return refuseField(place, whyTooMany(field));
}

/** Says that a list or a map has too many elements, as the validator does. */
export function whyTooMany(field: DescField): string {
  const max = maxItemsOf(field);
  return field.fieldKind === "map"
    ? `map must be at most ${max} entries`
    : `must contain no more than ${max} item(s)`;
}
