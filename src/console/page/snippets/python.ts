/** Writes a call as a program in Python, with grpcio and the stubs of docs/clients.md. */
import type { DescFile, DescMessage } from "@bufbuild/protobuf";
import {
  indentRest,
  passwordVariable,
  readTarget,
  type SnippetCall,
  type SnippetOptions,
  tokenVariable,
} from "./call.ts";
import { quotePythonOrGo as quote } from "./literals.ts";
import { type FieldValue, readRequest, type Value } from "./request-tree.ts";

const indent = "    ";
/** Names of fields that cannot be names of arguments. */
const keywords =
  /^(and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|None|True|False)$/;

export function writePython(call: SnippetCall, { origin, isShort = false }: SnippetOptions): string {
  const { method, token } = call;
  const { target, isSecure } = readTarget(origin);
  const standard = new Set<string>();
  const modules = new Set<string>();

  const nameModule = (file: DescFile): string => {
    const [, folder = "", name = ""] = /^(.*)\/(.*)$/.exec(file.name) ?? [];
    modules.add(`from ${folder.replaceAll("/", ".")} import ${name}_pb2`);
    return `${name}_pb2`;
  };
  const nameMessage = (desc: DescMessage): string =>
    `${nameModule(desc.file)}.${desc.typeName.slice(desc.file.proto.package.length + 1)}`;

  const writeArgument = ({ field, value }: FieldValue): string =>
    keywords.test(field.name) ? `**{${quote(field.name)}: ${write(value)}}` : `${field.name}=${write(value)}`;

  const write = (value: Value): string => {
    switch (value.kind) {
      case "message":
        return writeItems(`${nameMessage(value.desc)}(`, value.fields.map(writeArgument), ")");
      case "list":
        return writeItems("[", value.items.map(write), "]");
      case "map":
        return writeItems(
          "{",
          value.entries.map(([key, item]) => `${write(key)}: ${write(item)}`),
          "}",
        );
      case "text":
        return quote(value.text);
      case "password":
        standard.add("os");
        return `os.environ[${quote(passwordVariable)}]`;
      case "text bytes":
        return `${quote(value.text)}.encode()`;
      case "bytes":
        standard.add("base64");
        return `base64.b64decode(${quote(value.base64)})`;
      case "number":
        return value.digits;
      case "boolean":
        return value.isTrue ? "True" : "False";
    }
  };

  const request = write(readRequest(method.input, call.request, isShort));
  const stub = `${method.parent.name}Stub`;
  const [, folder = "", file = ""] = /^(.*)\/(.*)$/.exec(method.parent.file.name) ?? [];
  const metadata = `metadata=[("authorization", "Bearer " + os.environ[${quote(tokenVariable)}])]`;
  if (token !== undefined) standard.add("os");
  const args = token === undefined ? [request] : [request, metadata];
  const made = writeItems(`${stub}(channel).${method.name}(`, args, ")");
  const channel = isSecure
    ? `grpc.secure_channel(${quote(target)}, grpc.ssl_channel_credentials())`
    : `grpc.insecure_channel(${quote(target)})`;
  return [
    ...[...standard].sort().map((name) => `import ${name}`),
    ...(standard.size > 0 ? [""] : []),
    "import grpc",
    "",
    ...[...modules].sort(),
    `from ${folder.replaceAll("/", ".")}.${file}_pb2_grpc import ${stub}`,
    "",
    `with ${channel} as channel:`,
    ...(method.methodKind === "unary"
      ? [`${indent}answer = ${indentRest(made, indent)}`, `${indent}print(answer)`]
      : [`${indent}for answer in ${indentRest(made, indent)}:`, `${indent}${indent}print(answer)`]),
    "",
  ].join("\n");
}

function writeItems(open: string, items: readonly string[], close: string): string {
  if (items.length === 0) return open + close;
  return `${open}\n${items.map((item) => `${indent}${indentRest(item, indent)},\n`).join("")}${close}`;
}
