import { type SnippetInput, tokenNote } from "./input.ts";
import { quoteShell } from "./literals.ts";
import { joinBody, joinLines, shellToken } from "./shell.ts";

/** Writes the REST call as a curl command. */
export function writeCurl({ http, hasToken, isStream, isJson }: SnippetInput): string {
  const { verb, url, headers, body } = http;
  const usual = body === undefined ? "GET" : "POST";
  const parts = [
    `curl --fail-with-body -sS${isStream ? "N" : ""} ${quoteShell(url)}`,
    ...(verb === usual ? [] : [`-X ${verb}`]),
    ...(hasToken ? [shellToken] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoteShell(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : ["-H 'content-type: application/json'"]),
  ];
  // Bytes do not belong on a terminal; a note is text.
  const rest = isJson || isStream ? [] : ["-o answer"];
  const command = body === undefined ? joinLines([...parts, ...rest]) : joinBody(parts, "@-", body, ...rest);
  return hasToken ? `# ${tokenNote}\n${command}` : command;
}
