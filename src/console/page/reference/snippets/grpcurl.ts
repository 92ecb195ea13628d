import { type SnippetInput, tokenNote } from "./input.ts";
import { joinLines, quoteShell, shellToken } from "./shell.ts";

/** Writes the same call over gRPC. grpcurl asks the server for its protos, by reflection. */
export function writeGrpcurl({ http, message, rpc, hasToken }: SnippetInput): string {
  const { protocol, hostname, port } = new URL(http.url);
  const isSecure = protocol === "https:";
  const isEmpty = message === undefined || JSON.stringify(message) === "{}";
  const key = http.headers["idempotency-key"];
  const command = joinLines([
    `grpcurl${isSecure ? "" : " -plaintext"}`,
    ...(hasToken ? [shellToken] : []),
    ...(key === undefined ? [] : [`-H ${quoteShell(`idempotency-key: ${key}`)}`]),
    ...(isEmpty ? [] : [`-d ${quoteShell(JSON.stringify(message, omitNull, 2))}`]),
    `${hostname}:${port || (isSecure ? "443" : "80")} ${rpc}`,
  ]);
  return hasToken ? `# ${tokenNote}\n${command}` : command;
}

/** grpcurl refuses null for a field that is not a message. Omitting the field means the same. */
function omitNull(_name: string, value: unknown): unknown {
  return value === null ? undefined : value;
}
