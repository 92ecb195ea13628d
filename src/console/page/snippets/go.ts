/** Writes a call as a program in Go, with grpc-go and the stubs of docs/clients.md, as gofmt formats it. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
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

/** FeatureSet.FieldPresence of a field that tells an unset value from an empty one. */
const explicitPresence = 1;

/** The types of Go, of which package proto has functions that make pointers. */
const types: Readonly<Partial<Record<ScalarType, string>>> = {
  [ScalarType.STRING]: "string",
  [ScalarType.BOOL]: "bool",
  [ScalarType.BYTES]: "[]byte",
  [ScalarType.DOUBLE]: "float64",
  [ScalarType.FLOAT]: "float32",
  [ScalarType.INT32]: "int32",
  [ScalarType.UINT32]: "uint32",
  [ScalarType.INT64]: "int64",
  [ScalarType.UINT64]: "uint64",
};

export function writeGo(call: SnippetCall, { origin, isShort = false }: SnippetOptions): string {
  const { method, token } = call;
  const { target, isSecure } = readTarget(origin);
  const standard = new Set(["context", "fmt", "log"]);
  const others = new Set(["google.golang.org/grpc"]);
  let decodes = false;

  const nameIn = (path: string, name: string): string => {
    const [folder = "", alias = folder.replace(/^.*\//, "")] = path.split(";");
    others.add(folder);
    return `${alias}.${name}`;
  };
  const nameMessage = (desc: DescMessage): string =>
    nameIn(
      desc.file.proto.options?.goPackage ?? "",
      desc.typeName.slice(desc.file.proto.package.length + 1).replaceAll(".", "_"),
    );
  const nameType = (message: DescMessage | undefined, scalar: ScalarType | undefined): string =>
    message ? `*${nameMessage(message)}` : (types[scalar ?? ScalarType.STRING] ?? "string");

  const writeField = ({ field, value }: FieldValue): readonly [string, string] => {
    const written = write(value);
    const type = field.fieldKind === "scalar" ? (types[field.scalar] ?? "string") : "[]byte";
    // A slice can be nil; other values that may be unset are pointers.
    const isPointer = field.presence === explicitPresence && type !== "[]byte";
    if (!isPointer) return [toGoName(field), written];
    others.add("google.golang.org/protobuf/proto");
    return [toGoName(field), `proto.${type.replace(/^./, (first) => first.toUpperCase())}(${written})`];
  };

  const write = (value: Value): string => {
    switch (value.kind) {
      case "message":
        return writeEntries(`&${nameMessage(value.desc)}{`, value.fields.map(writeField));
      case "list": {
        const { message, scalar } = value.field.fieldKind === "list" ? value.field : {};
        return writeItems(`[]${nameType(message, scalar)}{`, value.items.map(write), "}");
      }
      case "map": {
        const { message, scalar } = value.field.fieldKind === "map" ? value.field : {};
        const entries = value.entries.map(([key, item]) => [write(key), write(item)] as const);
        return writeEntries(`map[string]${nameType(message, scalar)}{`, entries);
      }
      case "text":
        return quote(value.text);
      case "password":
        standard.add("os");
        return `os.Getenv(${quote(passwordVariable)})`;
      case "text bytes":
        return `[]byte(${quote(value.text)})`;
      case "bytes":
        decodes = true;
        standard.add("encoding/base64");
        return `decode(${quote(value.base64)})`;
      case "number":
        return value.digits;
      case "boolean":
        return String(value.isTrue);
    }
  };

  const request = write(readRequest(method.input, call.request, isShort));
  const client = nameIn(method.parent.file.proto.options?.goPackage ?? "", `New${method.parent.name}Client`);
  if (!isSecure) others.add("google.golang.org/grpc/credentials/insecure");
  const credentials = isSecure ? "credentials.NewTLS(nil)" : "insecure.NewCredentials()";
  if (isSecure) others.add("google.golang.org/grpc/credentials");
  if (token !== undefined) {
    standard.add("os");
    others.add("google.golang.org/grpc/metadata");
  }
  const isStream = method.methodKind !== "unary";
  if (isStream) standard.add("io");
  const made = `${client}(conn).${method.name}(ctx, ${request})`;
  const body = [
    `conn, err := grpc.NewClient(${quote(target)}, grpc.WithTransportCredentials(${credentials}))`,
    ...fail(),
    "defer conn.Close()",
    "ctx := context.Background()",
    ...(token === undefined
      ? []
      : [
          `ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Getenv(${quote(tokenVariable)}))`,
        ]),
    ...(isStream ? writeStream(made) : [`answer, err := ${made}`, ...fail(), "fmt.Println(answer)"]),
  ];
  return [
    "package main",
    "",
    "import (",
    ...[...standard].sort().map((path) => `\t"${path}"`),
    "",
    ...[...others].sort().map((path) => `\t"${path}"`),
    ")",
    "",
    "func main() {",
    ...body.map((line) => `\t${indentRest(line, "\t")}`),
    "}",
    ...(decodes ? decoder : []),
    "",
  ].join("\n");
}

function fail(): readonly string[] {
  return ["if err != nil {", "\tlog.Fatal(err)", "}"];
}

function writeStream(made: string): readonly string[] {
  return [
    `stream, err := ${made}`,
    ...fail(),
    "for {",
    "\tanswer, err := stream.Recv()",
    "\tif err == io.EOF {",
    "\t\tbreak",
    "\t}",
    ...fail().map((line) => `\t${line}`),
    "\tfmt.Println(answer)",
    "}",
  ];
}

const decoder = [
  "",
  "func decode(text string) []byte {",
  "\tdata, err := base64.StdEncoding.DecodeString(text)",
  ...fail().map((line) => `\t${line}`),
  "\treturn data",
  "}",
];

/** The name that protoc-gen-go gives a field: "KeyId" for "key_id". */
function toGoName({ name }: DescField): string {
  return name.replace(/(?:^|_)([a-z])/g, (_whole, letter: string) => letter.toUpperCase());
}

/** gofmt aligns the values of neighbouring lines, except for values of several lines. */
function writeEntries(open: string, entries: readonly (readonly [string, string])[]): string {
  const isShort = (at: number): boolean => entries[at]?.[1].includes("\n") === false;
  const items = entries.map(([key, value], at) => {
    if (!isShort(at)) return `${key}: ${value}`;
    let first = at;
    while (isShort(first - 1)) first -= 1;
    let width = 0;
    for (let other = first; isShort(other); other += 1)
      width = Math.max(width, entries[other]?.[0].length ?? 0);
    return `${`${key}:`.padEnd(width + 1)} ${value}`;
  });
  return writeItems(open, items, "}");
}

function writeItems(open: string, items: readonly string[], close: string): string {
  if (items.length === 0) return open + close;
  return `${open}\n${items.map((item) => `\t${indentRest(item, "\t")},\n`).join("")}${close}`;
}
