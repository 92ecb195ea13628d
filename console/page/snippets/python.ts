import type { JsonValue } from "@bufbuild/protobuf";
import { parseJson, type SnippetInput, tokenNote } from "./input.ts";
import { quotePythonOrGo as quote } from "./literals.ts";

/** Writes the call in Python with the requests package. */
export function writePython({ http, hasToken, isStream, isJson }: SnippetInput): string {
  const { verb, url, headers, body, file } = http;
  const value = body === undefined ? undefined : parseJson(body);
  const sent = [
    ...(hasToken ? [`"authorization": f"Bearer {os.environ['QSP_TOKEN']}"`] : []),
    ...Object.entries(headers).map(([name, text]) => `${quote(name)}: ${quote(text)}`),
  ];
  const parts = [
    quote(url),
    ...(sent.length === 0 ? [] : [`headers={${sent.join(", ")}}`]),
    ...(file === undefined ? [] : [`data=open(${quote(file.name)}, "rb")`]),
    ...(value === undefined ? [] : [`json=${write(value, "    ")}`]),
    ...(isStream ? ["stream=True"] : []),
    `timeout=${isStream ? "None" : "30"}`,
  ];
  return [
    ...(hasToken ? [`# ${tokenNote}`, "import os"] : []),
    ...["import sys", "", "import requests", ""],
    `response = requests.${verb.toLowerCase()}(`,
    ...parts.map((part) => `    ${part},`),
    ")",
    // raise_for_status() would hide the server's message.
    "if not response.ok:",
    '    sys.exit(f"{response.status_code} {response.text}")',
    ...writeUse(isStream, isJson),
  ].join("\n");
}

function writeUse(isStream: boolean, isJson: boolean): string[] {
  if (isStream) return ["for line in response.iter_lines():", "    print(line.decode())"];
  return [isJson ? "print(response.json())" : "print(response.content)"];
}

/** Writes JSON as a Python value. */
function write(value: JsonValue, indent: string): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return quote(value);
  if (typeof value === "number") return String(value);
  const inner = `${indent}    `;
  const [open, close, parts] = Array.isArray(value)
    ? ["[", "]", value.map((part) => write(part, inner))]
    : ["{", "}", Object.entries(value).map(([name, part]) => `${quote(name)}: ${write(part, inner)}`)];
  return parts.length === 0
    ? open + close
    : `${open}\n${parts.map((part) => `${inner}${part},\n`).join("")}${indent}${close}`;
}
