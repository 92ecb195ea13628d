/** The names of descriptors, as in protos. */
import type { AnyDesc } from "@bufbuild/protobuf";

/** The full name of a part of a proto file: "kms.KmsService.Sign", "kms.SignRequest.key_id". */
export function findFullName(desc: AnyDesc): string {
  switch (desc.kind) {
    case "file":
      return desc.name;
    case "rpc":
    case "field":
    case "oneof":
    case "enum_value":
      return `${desc.parent.typeName}.${desc.name}`;
    default:
      return desc.typeName;
  }
}
