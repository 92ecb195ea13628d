/** The names of status codes. */
import { Code } from "@connectrpc/connect";

/** The name of a gRPC status code as google/rpc/code.proto spells it: "NOT_FOUND". */
export function nameCode(code: Code): string {
  // Connect's own name has one L.
  if (code === Code.Canceled) return "CANCELLED";
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
