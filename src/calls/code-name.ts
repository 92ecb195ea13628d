import { Code } from "@connectrpc/connect";

/** Returns the name of a gRPC status code as spelled in google/rpc/code.proto: "NOT_FOUND". */
export function nameCode(code: Code): string {
  // Connect's own name has one L.
  if (code === Code.Canceled) return "CANCELLED";
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
