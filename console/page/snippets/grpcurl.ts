import { type SnippetInput, tokenNote } from "./input.ts";
import { quoteShell, writeJson } from "./literals.ts";
import { joinBody, joinLines, shellToken } from "./shell.ts";

/** Writes the same call over gRPC. grpcurl reads the server's protos through reflection. */
export function writeGrpcurl({ http, message, rpc, hasToken }: SnippetInput): string {
  const { protocol, hostname, port } = new URL(http.url);
  const isSecure = protocol === "https:";
  const isEmpty = message === undefined || JSON.stringify(message) === "{}";
  const key = http.headers["idempotency-key"];
  const parts = [
    `grpcurl${isSecure ? "" : " -plaintext"}`,
    ...(hasToken ? [shellToken] : []),
    ...(key === undefined ? [] : [`-H ${quoteShell(`idempotency-key: ${key}`)}`]),
  ];
  const call = `${quoteShell(`${hostname}:${port || (isSecure ? "443" : "80")}`)} ${rpc}`;
  const command = isEmpty
    ? joinLines([...parts, call])
    : joinBody(parts, "@", writeJson(omitNulls(message), 2), call);
  return hasToken ? `# ${tokenNote}\n${command}` : command;
}

/** grpcurl rejects null for a field that is not a message. Omitting the field means the same. */
function omitNulls(message: unknown): unknown {
  return JSON.parse(JSON.stringify(message, (_name, value) => (value === null ? undefined : value)));
}
