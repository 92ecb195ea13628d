/** Describes proto rules across several fields (buf/validate/validate.proto). */
import { type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import {
  type MessageOneofRule,
  message as messageRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** Describes the rules that allow only one of several fields to be set. */
export function listOneofRules(
  desc: DescMessage,
): { readonly fields: readonly string[]; readonly text: string }[] {
  const rules = hasOption(desc, messageRules) ? getOption(desc, messageRules).oneof : [];
  return rules.map((rule) => ({ fields: rule.fields, text: sayOneof(desc, rule) }));
}

function sayOneof(desc: DescMessage, { fields, required }: MessageOneofRule): string {
  const names = fields.map((name) => desc.fields.find((field) => field.name === name)?.jsonName ?? name);
  return `set ${required ? "exactly" : "at most"} one of ${listNames(names)}`;
}

/** Joins names as a sentence does: "a, b and c". */
export function listNames(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
