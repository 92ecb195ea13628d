/** Writes a call as a module of TypeScript, which is JavaScript too, with the package of docs/clients.md. */
import { isLoopback } from "../../../client/loopback.ts";
import {
  indentRest,
  passwordVariable,
  type SnippetCall,
  type SnippetOptions,
  tokenVariable,
} from "./call.ts";
import { quoteTypeScript as quote } from "./literals.ts";
import { readRequest, type Value } from "./request-tree.ts";

const indent = "  ";

export function writeTypeScript(call: SnippetCall, { origin, isShort = false }: SnippetOptions): string {
  const { method, token } = call;
  const client = nameClient(method.parent.name);
  const { protocol, hostname } = new URL(origin);
  // The package sends no token in the clear to another machine, unless told so. The page just did.
  const isOpen = token !== undefined && protocol === "http:" && !isLoopback(hostname);
  const options = [
    ...(token === undefined ? [] : [`token: process.env.${tokenVariable} ?? ""`]),
    ...(isOpen ? ["allowCleartext: true"] : []),
  ];
  const tail = options.length === 0 ? "" : `, { ${options.join(", ")} }`;
  const request = write(readRequest(method.input, call.request, isShort));
  const made = `${client}.${method.localName}(${request})`;
  return [
    'import { createClients } from "quantum-safe-playground/client";',
    "",
    `const { ${client} } = createClients(${quote(origin)}${tail});`,
    ...(method.methodKind === "unary"
      ? [`const answer = await ${made};`, "console.log(answer);"]
      : [`for await (const answer of ${made}) console.log(answer);`]),
    "",
  ].join("\n");
}

/** The name that the package has for the client of a service: "kms" for "KmsService". */
export function nameClient(service: string): string {
  return service.replace(/Service$/, "").replace(/^./, (first) => first.toLowerCase());
}

function write(value: Value): string {
  switch (value.kind) {
    case "message":
      return writeItems(
        "{",
        value.fields.map(({ field, value }) => `${field.localName}: ${write(value)}`),
        "}",
      );
    case "list":
      return writeItems("[", value.items.map(write), "]");
    case "map":
      return writeItems(
        "{",
        // In brackets, "__proto__" is a key like others.
        value.entries.map(([key, item]) => `[${write(key)}]: ${write(item)}`),
        "}",
      );
    case "text":
      return quote(value.text);
    case "password":
      return `process.env.${passwordVariable} ?? ""`;
    case "text bytes":
      return `Buffer.from(${quote(value.text)})`;
    case "bytes":
      return `Buffer.from(${quote(value.base64)}, "base64")`;
    case "number":
      return value.isBigInt ? `${value.digits}n` : value.digits;
    case "boolean":
      return String(value.isTrue);
  }
}

function writeItems(open: string, items: readonly string[], close: string): string {
  if (items.length === 0) return open + close;
  return `${open}\n${items.map((item) => `${indent}${indentRest(item, indent)},\n`).join("")}${close}`;
}
