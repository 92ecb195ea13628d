/** docs/errors.md: every reason, its cause and its remedy. */

import type { NamedReason } from "../errors/reason.ts";
import { refuse, toHttpStatus } from "../errors.ts";
import { nameCode } from "../protocol/code-name.ts";
import { escapeBars, renderCode, renderTable } from "./markdown.ts";

/** The reasons of one topic. */
interface ReasonSection {
  readonly heading: string;
  readonly reasons: readonly NamedReason[];
}

/** Renders the page. */
export function renderErrorsPage(topics: readonly ReasonSection[]): string {
  const sections = topics.map(({ heading, reasons }) => {
    const table = renderTable(["reason", "code", "HTTP", "cause", "remedy"], reasons.map(renderRow));
    const note = notes[heading];
    return `## ${heading}\n\n${table}\n${note === undefined ? "" : `\n${note}\n`}`;
  });
  return [introduce(topics), ...sections].join("\n");
}

function renderRow(reason: NamedReason): string[] {
  const { name, code, cause, remedy } = reason;
  const status = String(toHttpStatus(refuse(reason, "")));
  return [renderCode(name), nameCode(code), status, escapeBars(cause), escapeBars(remedy)];
}

function introduce(topics: readonly ReasonSection[]): string {
  const all = topics.flatMap(({ reasons }) => reasons);
  const faults = all.flatMap(({ name, isServerFault }) => (isServerFault ? [renderCode(name)] : []));
  return `<!-- Written by \`npm run docs\` from src/errors/. -->

# Why a call fails

This page is for developers who call the server and for operators who run it. After reading it, you know what each reason means and what to do about it.

An error has the same parts over gRPC, gRPC-Web, Connect and REST: a status code, a message for people, and a \`google.rpc.ErrorInfo\` of the domain \`quantum-safe-playground\`. Programs compare its \`reason\`, because messages may change. Its \`metadata\` holds every variable part of the message. If a retry can help, \`google.rpc.RetryInfo\` and the header \`Retry-After\` say when. Over REST the details are in the body:

\`\`\`json
{"status":"error","code":"NOT_FOUND","message":"…","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"KEY_NOT_FOUND","domain":"quantum-safe-playground","metadata":{…}}]}
\`\`\`

Services of Google's APIs, if an [extension](extensions.md) has any, have the same parts in Google's form: \`{"error":{"code":404,"message":"…","status":"NOT_FOUND","details":[…]}}\`.

The options \`qsp.reason\` of an RPC in its proto name the reasons that depend on what it does, and \`/openapi.json\` lists all of its reasons by their HTTP status.

A signature that does not verify is an answer (\`"valid":false\`), not an error.

The server logs these reasons as errors, because only its operator can act on them: ${faults.join(", ")}. [Settings](settings.md) explains the flags below. It logs all others with \`--log-level debug\`. They are the caller's, except for \`STORE_FULL\`: of a full disk, the log has the beginning and the end.
`;
}

/** The notes below the tables. */
const notes: Readonly<Record<string, string>> = {
  "Finding the call": `Over HTTP/2 the server announces how much metadata it reads (\`SETTINGS_MAX_HEADER_LIST_SIZE\`): eight times \`--max-metadata-bytes\`, 131,072 by default, where each field counts 32 bytes more. Up to that size, and up to 256 fields with the pseudo-headers, the answer is \`METADATA_TOO_LARGE\`. Above it the server resets the stream (\`ENHANCE_YOUR_CALM\`; gRPC clients report RESOURCE_EXHAUSTED without details), and other calls of the connection continue. grpc-go does not send such a call at all. A client that sends more than 131,072 bytes before it has acknowledged the settings loses its connection (GOAWAY \`ENHANCE_YOUR_CALM\`). Two more cases end the whole connection, because the HTTP/2 library stops reading and cannot decode what follows: one field of more than 65,536 bytes as encoded (GOAWAY \`COMPRESSION_ERROR\`), and more than 147,456 bytes of encoded metadata (GOAWAY \`INTERNAL_ERROR\`). A client then opens a new connection by itself.

Over HTTP/1.1 the server ignores \`Upgrade\`: it answers the request, and then closes the connection, because Node's parser does not find what follows such a request. It also closes the connection after a request whose last \`Transfer-Encoding\` is not \`chunked\`.`,
  "Headers and body": `Over HTTP/2 a body must be as long as \`content-length\` says. A shorter one has its stream reset (\`PROTOCOL_ERROR\`). A longer one ends the whole connection (GOAWAY \`INTERNAL_ERROR\`), because Node's HTTP/2 library takes it for an error of the connection.`,
};
