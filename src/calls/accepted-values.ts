/** Reads the values that the rules of a field accept (buf/validate/validate.proto). */
import { type DescField, getOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/**
 * Lists the texts that a request field accepts, in the order of the proto; for a list, the texts that its
 * elements accept. Empty if the rules accept any text.
 */
export function listAccepted(field: DescField): readonly string[] {
  const { type } = getOption(field, fieldRules);
  const rules = type.case === "repeated" ? type.value.items?.type : type;
  return rules?.case === "string" ? rules.value.in : [];
}
