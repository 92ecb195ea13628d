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
  const imports = new Imports();
  const request = writeValue(imports, readRequest(method.input, call.request, isShort));
  const client = imports.name(
    method.parent.file.proto.options?.goPackage ?? "",
    `New${method.parent.name}Client`,
  );
  imports.others.add(`google.golang.org/grpc/credentials${isSecure ? "" : "/insecure"}`);
  const credentials = isSecure ? "credentials.NewTLS(nil)" : "insecure.NewCredentials()";
  if (token !== undefined) {
    imports.standard.add("os");
    imports.others.add("google.golang.org/grpc/metadata");
  }
  const isStream = method.methodKind !== "unary";
  if (isStream) imports.standard.add("io");
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
    ...[...imports.standard].sort().map((path) => `\t"${path}"`),
    "",
    ...[...imports.others].sort().map((path) => `\t"${path}"`),
    ")",
    "",
    "func main() {",
    ...body.map((line) => `\t${indentRest(line, "\t")}`),
    "}",
    ...(imports.standard.has(base64) ? decoder : []),
    "",
  ].join("\n");
}

/** The package whose function `decode` the program gets. */
const base64 = "encoding/base64";

/** The packages that a program imports. */
class Imports {
  readonly standard = new Set(["context", "fmt", "log"]);
  readonly others = new Set(["google.golang.org/grpc"]);

  /** Imports a package, and returns the qualified name of one of its parts. */
  name(path: string, name: string): string {
    const [folder = "", alias = folder.replace(/^.*\//, "")] = path.split(";");
    this.others.add(folder);
    return `${alias}.${name}`;
  }

  nameMessage(desc: DescMessage): string {
    const name = desc.typeName.slice(desc.file.proto.package.length + 1).replaceAll(".", "_");
    return this.name(desc.file.proto.options?.goPackage ?? "", name);
  }

  nameType(message: DescMessage | undefined, scalar: ScalarType | undefined): string {
    if (message !== undefined) return `*${this.nameMessage(message)}`;
    return types[scalar ?? ScalarType.STRING] ?? "string";
  }
}

function writeValue(imports: Imports, value: Value): string {
  const write = (item: Value): string => writeValue(imports, item);
  switch (value.kind) {
    case "message": {
      const fields = value.fields.map((field) => writeField(imports, field));
      return writeEntries(`&${imports.nameMessage(value.desc)}{`, fields);
    }
    case "list": {
      const { message, scalar } = value.field.fieldKind === "list" ? value.field : {};
      return writeItems(`[]${imports.nameType(message, scalar)}{`, value.items.map(write), "}");
    }
    case "map": {
      const { message, scalar } = value.field.fieldKind === "map" ? value.field : {};
      const entries = value.entries.map(([key, item]) => [write(key), write(item)] as const);
      return writeEntries(`map[string]${imports.nameType(message, scalar)}{`, entries);
    }
    case "text":
      return quote(value.text);
    case "password":
      imports.standard.add("os");
      return `os.Getenv(${quote(passwordVariable)})`;
    case "text bytes":
      return `[]byte(${quote(value.text)})`;
    case "bytes":
      imports.standard.add(base64);
      return `decode(${quote(value.base64)})`;
    case "number":
      return value.digits;
    case "boolean":
      return String(value.isTrue);
  }
}

function writeField(imports: Imports, { field, value }: FieldValue): readonly [string, string] {
  const written = writeValue(imports, value);
  const type = field.fieldKind === "scalar" ? (types[field.scalar] ?? "string") : "[]byte";
  // A slice can be nil; other values that may be unset are pointers.
  const isPointer = field.presence === explicitPresence && type !== "[]byte";
  if (!isPointer) return [toGoName(field), written];
  imports.others.add("google.golang.org/protobuf/proto");
  return [toGoName(field), `proto.${type.replace(/^./, (first) => first.toUpperCase())}(${written})`];
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
