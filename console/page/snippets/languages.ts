/** A call as a command or a program: curl, grpcurl, Python, Go, and TypeScript with fetch. */
import { writeGo } from "./go.ts";
import { parseJson, type SnippetInput, tokenNote, tokenVariable } from "./input.ts";
import { quoteShell, writeJson } from "./literals.ts";
import { writePython } from "./python.ts";

/** In tab order. */
export const languageNames = ["curl", "grpcurl", "Python", "Go", "TypeScript"] as const;
export type LanguageName = (typeof languageNames)[number];

interface Language {
  readonly write: (input: SnippetInput) => string;
  /** How the client gets a private CA's certificate: a variable with its file name, or a flag. */
  readonly trust: string;
  /** The program's file name and the command that runs it. */
  readonly file?: string;
  readonly run?: string;
}

export const languages: Readonly<Record<LanguageName, Language>> = {
  curl: { write: writeCurl, trust: "--cacert" },
  grpcurl: { write: writeGrpcurl, trust: "-cacert" },
  Python: {
    write: writePython,
    trust: "REQUESTS_CA_BUNDLE",
    file: "call.py",
    run: "python3 -m pip install requests && python3 call.py",
  },
  Go: { write: writeGo, trust: "SSL_CERT_FILE", file: "main.go", run: "go run main.go" },
  TypeScript: {
    write: writeTypeScript,
    trust: "NODE_EXTRA_CA_CERTS",
    file: "call.mjs",
    run: "node call.mjs",
  },
};

/** The token header. In double quotes, the shell expands the variable and interprets nothing in its value. */
const shellToken = `-H "authorization: Bearer $${tokenVariable}"`;

/** Linux limits a single argument to 131,072 bytes (execve(2), MAX_ARG_STRLEN); a character can have four. */
const maxArgumentCharacters = 30_000;

/**
 * Joins a command's parts, one per line.
 *
 * @param rest parts behind the body
 */
function joinCommand({ hasToken }: SnippetInput, parts: readonly string[], body?: Body, ...rest: string[]) {
  const isLong = body !== undefined && body.json.length > maxArgumentCharacters;
  const data = isLong ? body.fromInput : quoteShell(body?.json ?? "");
  const command = [...parts, ...(body === undefined ? [] : [`-d ${data}`]), ...rest].join(" \\\n  ");
  // Being JSON, a body cannot contain a line that ends the heredoc.
  const whole = isLong ? `${command} <<'END'\n${body.json}\nEND` : command;
  return hasToken ? `# ${tokenNote}\n${whole}` : whole;
}

interface Body {
  readonly json: string;
  /** The value of `-d` that makes the program read standard input. */
  readonly fromInput: string;
}

/** Writes the REST call as a curl command. */
function writeCurl(input: SnippetInput): string {
  const { http, hasToken, isStream, isJson } = input;
  const { verb, url, headers, body, file } = http;
  const usual = file !== undefined ? "PUT" : body === undefined ? "GET" : "POST";
  const parts = [
    `curl --fail-with-body -sS${isStream ? "N" : ""} ${quoteShell(url)}`,
    ...(verb === usual ? [] : [`-X ${verb}`]),
    ...(hasToken ? [shellToken] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoteShell(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : ["-H 'content-type: application/json'"]),
    ...(file === undefined ? [] : [`--upload-file ${quoteShell(file.name)}`]),
  ];
  // Bytes do not belong on a terminal; a note is text.
  const rest = isJson || isStream ? [] : ["-o answer"];
  return joinCommand(input, parts, body === undefined ? undefined : { json: body, fromInput: "@-" }, ...rest);
}

/** Writes the same call over gRPC. grpcurl reads the server's protos through reflection. */
function writeGrpcurl(input: SnippetInput): string {
  const { http, message, rpc, hasToken } = input;
  const { protocol, hostname, port } = new URL(http.url);
  const isSecure = protocol === "https:";
  const key = http.headers["idempotency-key"];
  const parts = [
    `grpcurl${isSecure ? "" : " -plaintext"}`,
    ...(hasToken ? [shellToken] : []),
    ...(key === undefined ? [] : [`-H ${quoteShell(`idempotency-key: ${key}`)}`]),
  ];
  const call = `${quoteShell(`${hostname}:${port || (isSecure ? "443" : "80")}`)} ${rpc}`;
  const isEmpty = message === undefined || JSON.stringify(message) === "{}";
  const body = isEmpty ? undefined : { json: writeJson(omitNulls(message), 2), fromInput: "@" };
  return joinCommand(input, parts, body, call);
}

/** grpcurl rejects null for a field that is not a message. Omitting the field means the same. */
function omitNulls(message: unknown): unknown {
  return JSON.parse(JSON.stringify(message, (_name, value) => (value === null ? undefined : value)));
}

/** Writes the call in TypeScript and JavaScript with fetch. */
function writeTypeScript({ http, hasToken, isStream, isJson }: SnippetInput): string {
  const { verb, url, headers, body, file } = http;
  const value = body === undefined ? undefined : parseJson(body);
  const sent = [
    ...(hasToken ? [`authorization: "Bearer " + process.env.${tokenVariable}`] : []),
    ...(body === undefined ? [] : ['"content-type": "application/json"']),
    ...Object.entries(headers).map(([name, text]) => `${writeJson(name)}: ${writeJson(text)}`),
  ];
  const parts = [
    ...(verb === "GET" ? [] : [`method: "${verb}"`]),
    ...(sent.length === 0 ? [] : [`headers: { ${sent.join(", ")} }`]),
    ...(file === undefined ? [] : [`body: await openAsBlob(${writeJson(file.name)})`]),
    ...(value === undefined ? [] : [`body: JSON.stringify(${writeJson(value, 2).replaceAll("\n", "\n  ")})`]),
  ];
  const options = parts.length === 0 ? "" : `, {\n${parts.map((part) => `  ${part},\n`).join("")}}`;
  return [
    ...(hasToken ? [`// ${tokenNote}`] : []),
    ...(file === undefined ? [] : ['import { openAsBlob } from "node:fs";']),
    `const response = await fetch(${JSON.stringify(url)}${options});`,
    "if (!response.ok) throw new Error(await response.text());",
    ...(isStream
      ? [
          "const texts = response.body?.pipeThrough(new TextDecoderStream()) ?? [];",
          "for await (const text of texts) console.log(text);",
        ]
      : [`console.log(await response.${isJson ? "json" : "bytes"}());`]),
  ].join("\n");
}
