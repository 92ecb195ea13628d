/** `qsp call`: makes any call of any service, based on the descriptors alone. */
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  fromJsonString,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import { suggest } from "../../suggest.ts";
import { oneOf } from "../connection/api-client.ts";
import { usageError } from "../exit-codes.ts";
import { decodeText, readData, readLines } from "../files/read.ts";
import { facts, table } from "../output/output.ts";
import { declareVerb, type Verb, type VerbInput } from "../verb.ts";
import { createCallRegistry, findRestPath, listMethods, nameMethod } from "./call-registry.ts";

export const callVerbs: readonly Verb[] = [
  declareVerb({
    line: "call [SERVICE/METHOD] [JSON]",
    operandFiles: { JSON: "data" },
    options: {
      list: { meaning: "Lists all calls" },
      describe: { meaning: "Shows the request and the response of a call" },
    },
    meaning:
      "Makes any call. The request is JSON, @FILE, or - for standard input; {} if omitted. Request streams\n" +
      "reads one JSON document per line; one with a response stream prints one per line. The exit code is 0 whatever\n" +
      "the answer says.",
    example: `qsp call kms.KmsService/CreateKey '{"alias": "invoices"}'`,
    async run(input) {
      await call(createCallRegistry(await input.loadPackages()), input);
    },
  }),
];

async function call(
  registry: Registry,
  { operands: [name, json = "{}"], options, output, server }: VerbInput,
): Promise<void> {
  if (options.flag("list")) {
    const rows = listMethods(registry).map((method) => [
      nameMethod(method),
      describeStreams(method),
      findRestPath(method) ?? "",
    ]);
    return output.print(table(["CALL", "STREAMS", "REST"], rows));
  }
  if (name === undefined) throw usageError("SERVICE/METHOD is missing; qsp call --list shows all");
  const method = findMethod(registry, name);
  if (options.flag("describe")) {
    return output.print(describe(method));
  }
  const print = (answer: Message): void => output.json(method.output, answer, registry);
  if (isUnary(method))
    return print(await server.ask(method, await readRequest(registry, method.input, json)));
  if (!isStreaming(method)) throw new Error(`${name} has an unknown kind`);
  const requests =
    method.methodKind === "server_streaming"
      ? oneOf(await readRequest(registry, method.input, json))
      : readRequests(registry, method.input, json);
  for await (const answer of server.stream(method, requests)) print(answer);
}

function isUnary(method: DescMethod): method is DescMethod & DescMethodUnary {
  return method.methodKind === "unary";
}

function isStreaming(method: DescMethod): method is DescMethod & DescMethodStreaming {
  return method.methodKind !== "unary";
}

function findMethod(registry: Registry, name: string): DescMethod {
  const methods = listMethods(registry);
  const method = methods.find((candidate) => nameMethod(candidate) === name);
  if (method !== undefined) return method;
  // People may know the method but forget the service.
  const similar = new Set([
    ...methods.filter((candidate) => candidate.name.toLowerCase() === name.toLowerCase()).map(nameMethod),
    ...suggest(name, methods.map(nameMethod)),
  ]);
  const advice =
    similar.size === 0 ? "qsp call --list shows all" : `did you mean ${[...similar].join(" or ")}?`;
  throw usageError(`"${name}" is not a call; ${advice}`);
}

async function readRequest(registry: Registry, input: DescMessage, operand: string): Promise<Message> {
  return parse(registry, input, decodeText(await readData(operand), "the request"), "the request");
}

async function* readRequests(
  registry: Registry,
  input: DescMessage,
  operand: string,
): AsyncGenerator<Message> {
  const isFile = operand === "-" || operand.startsWith("@");
  let number = 0;
  for await (const line of isFile ? readLines(operand.replace(/^@/, "")) : operand.split("\n")) {
    number += 1;
    if (line.trim() !== "") yield parse(registry, input, line, `line ${number}`);
  }
}

function parse(registry: Registry, input: DescMessage, text: string, what: string): Message {
  try {
    return fromJsonString(input, text, { registry });
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw usageError(`${what} is not the JSON of ${input.typeName}: ${problem}`);
  }
}

function describeStreams({ methodKind }: DescMethod): string {
  return {
    unary: "",
    client_streaming: "in",
    server_streaming: "out",
    bidi_streaming: "in and out",
  }[methodKind];
}

function describe(method: DescMethod): string {
  const about = facts({
    call: nameMethod(method),
    REST: findRestPath(method),
    streams: describeStreams(method),
  });
  return `${about}\n\ntakes\n${describeFields(method.input)}\n\ngives\n${describeFields(method.output)}`;
}

/** Lists the fields of a message and of its nested messages. */
function describeFields(message: DescMessage, indent = "  ", above: readonly string[] = []): string {
  if (message.fields.length === 0) return `${indent}(nothing)`;
  return message.fields
    .flatMap((field) => {
      const line = `${indent}${field.jsonName}: ${describeType(field)}`;
      const inner = field.message;
      const isOpen =
        inner !== undefined &&
        !inner.typeName.startsWith("google.protobuf.") &&
        !above.includes(inner.typeName);
      return isOpen
        ? [line, describeFields(inner, `${indent}  `, [...above, message.typeName, inner.typeName])]
        : [line];
    })
    .join("\n");
}

function describeType(field: DescField): string {
  const names: Readonly<Record<string, string>> = {
    "google.protobuf.Timestamp": "time (RFC 3339)",
    "google.protobuf.Duration": "duration, such as 1.5s",
  };
  const message = field.message?.typeName;
  const single =
    message !== undefined
      ? (names[message] ?? message)
      : (field.enum?.values.map(({ name }) => name).join(" | ") ?? scalarNames[field.scalar ?? 0] ?? "");
  const container = { list: "list of ", map: "map of text to ", message: "", enum: "", scalar: "" };
  const type = container[field.fieldKind] + single;
  return field.oneof === undefined ? type : `${type} (one of ${field.oneof.name})`;
}

/** JSON types by ScalarType number. */
const scalarNames: Readonly<Record<number, string>> = {
  1: "number",
  2: "number",
  3: "whole number in quotes",
  4: "whole number in quotes",
  5: "whole number",
  8: "true or false",
  9: "text",
  12: "bytes in base64",
  13: "whole number",
};
