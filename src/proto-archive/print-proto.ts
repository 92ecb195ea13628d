/** Prints a proto2 or proto3 file from its descriptor. */
import { isFieldSet, type Registry } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  EnumOptionsSchema,
  EnumValueOptionsSchema,
  ExtensionRangeOptionsSchema,
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  FieldOptionsSchema,
  type FileDescriptorProto,
  FileOptionsSchema,
  FieldDescriptorProto_Label as Label,
  MessageOptionsSchema,
  type MethodDescriptorProto,
  MethodOptionsSchema,
  OneofOptionsSchema,
  type ServiceDescriptorProto,
  ServiceOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { inBrackets, listOptions, type PrintedOption } from "./print-options.ts";

/** The exclusive end that protoc gives to the range `to max`. */
const endOfMax = 536_870_912;

interface Printer {
  /** Contains the extensions that options are set with. */
  readonly registry: Registry;
  readonly isProto3: boolean;
}

/**
 * Prints a file from its descriptor. A compiler reads the same descriptor back, apart from comments.
 *
 * @param registry the extensions in the file's options; other extensions are omitted
 * @throws Error for an edition other than proto2 and proto3, and for a group
 */
export function printProto(file: FileDescriptorProto, registry: Registry): string {
  if (!["", "proto2", "proto3"].includes(file.syntax))
    throw new Error(`${file.name}: cannot print syntax ${file.syntax}; only proto2 and proto3 are supported`);
  const printer: Printer = { registry, isProto3: file.syntax === "proto3" };
  const declarations = [
    ...file.service.map((service) => printService(service, printer)),
    ...file.messageType.map((message) => printMessage(message, printer)),
    ...file.enumType.map((declaration) => printEnum(declaration, printer)),
    ...printExtensions(file.extension, printer),
  ];
  const imports = file.dependency.map((path, i) => {
    return `import ${file.publicDependency.includes(i) ? "public " : ""}"${path}";`;
  });
  const paragraphs = [
    "// Printed from a descriptor, without comments.",
    `syntax = "${printer.isProto3 ? "proto3" : "proto2"}";`,
    `package ${file.package};`,
    imports.join("\n"),
    statements(listOptions(FileOptionsSchema, file.options, registry)).join("\n"),
    ...declarations,
  ];
  return `${paragraphs.filter((text) => text !== "").join("\n\n")}\n`;
}

function printService({ name, method, options }: ServiceDescriptorProto, { registry }: Printer): string {
  return block(`service ${name}`, [
    ...statements(listOptions(ServiceOptionsSchema, options, registry)),
    ...method.map((rpc) => printMethod(rpc, registry)),
  ]);
}

function printMethod(method: MethodDescriptorProto, registry: Registry): string {
  const input = `${method.clientStreaming ? "stream " : ""}${method.inputType}`;
  const output = `${method.serverStreaming ? "stream " : ""}${method.outputType}`;
  const head = `rpc ${method.name}(${input}) returns (${output})`;
  const options = statements(listOptions(MethodOptionsSchema, method.options, registry));
  return options.length === 0 ? `${head};` : block(head, options);
}

function printMessage(message: DescriptorProto, printer: Printer): string {
  const { registry } = printer;
  const entries = new Map(
    message.nestedType.filter(({ options }) => options?.mapEntry).map((entry) => [entry.name, entry]),
  );
  const ranges = message.extensionRange.map((range) => {
    const options = listOptions(ExtensionRangeOptionsSchema, range.options, registry);
    return `extensions ${printRange(range)}${inBrackets(options)};`;
  });
  return block(`message ${message.name}`, [
    ...statements(listOptions(MessageOptionsSchema, message.options, registry)),
    ...printFields(message, entries, printer),
    ...message.nestedType.filter(({ name }) => !entries.has(name)).map((type) => printMessage(type, printer)),
    ...message.enumType.map((declaration) => printEnum(declaration, printer)),
    ...ranges,
    ...printExtensions(message.extension, printer),
    ...message.reservedRange.map((range) => `reserved ${printRange(range)};`),
    ...message.reservedName.map((name) => `reserved "${name}";`),
  ]);
}

/** Prints the fields in order. A oneof is at the place of its first member. */
function printFields(
  message: DescriptorProto,
  entries: ReadonlyMap<string, DescriptorProto>,
  printer: Printer,
): string[] {
  const printed = new Set<number>();
  return message.field.flatMap((field): string[] => {
    const entry = entries.get(field.typeName.split(".").at(-1) ?? "");
    if (entry !== undefined && field.label === Label.REPEATED) return [printMapField(field, entry, printer)];
    if (!isOneofMember(field)) return [printField(field, printer)];
    if (printed.has(field.oneofIndex)) return [];
    printed.add(field.oneofIndex);
    const oneof = message.oneofDecl[field.oneofIndex];
    const members = message.field.filter(
      (other) => isOneofMember(other) && other.oneofIndex === field.oneofIndex,
    );
    return [
      block(`oneof ${oneof?.name}`, [
        ...statements(listOptions(OneofOptionsSchema, oneof?.options, printer.registry)),
        ...members.map((member) => printUnlabelled(member, printType(member), printer)),
      ]),
    ];
  });
}

/** An unset index reads as 0. An `optional` proto3 field is the only member of a synthetic oneof. */
function isOneofMember(field: FieldDescriptorProto): boolean {
  return isFieldSet(field, FieldDescriptorProtoSchema.field.oneofIndex) && !field.proto3Optional;
}

function printMapField(field: FieldDescriptorProto, entry: DescriptorProto, printer: Printer): string {
  const [key, value] = entry.field;
  if (key === undefined || value === undefined) throw new Error(`${entry.name} is not a map entry`);
  return printUnlabelled(field, `map<${printType(key)}, ${printType(value)}>`, printer);
}

function printField(field: FieldDescriptorProto, printer: Printer): string {
  const isUnlabelled = printer.isProto3 && field.label !== Label.REPEATED && !field.proto3Optional;
  const label = isUnlabelled ? "" : `${Label[field.label].toLowerCase()} `;
  return `${label}${printUnlabelled(field, printType(field), printer)}`;
}

/** Members of a oneof and maps have no label. */
function printUnlabelled(field: FieldDescriptorProto, type: string, { registry }: Printer): string {
  const options: PrintedOption[] = [];
  if (field.defaultValue !== "") options.push({ name: "default", value: printDefault(field) });
  if (field.jsonName !== "" && field.jsonName !== toJsonName(field.name))
    options.push({ name: "json_name", value: JSON.stringify(field.jsonName) });
  options.push(...listOptions(FieldOptionsSchema, field.options, registry));
  return `${type} ${field.name} = ${field.number}${inBrackets(options)};`;
}

function printType(field: FieldDescriptorProto): string {
  if (field.type === Type.GROUP) throw new Error(`${field.name}: cannot print a group`);
  return field.typeName === "" ? Type[field.type].toLowerCase() : field.typeName;
}

/** A bytes default is escaped in the descriptor as in the source. */
function printDefault({ type, defaultValue }: FieldDescriptorProto): string {
  if (type === Type.BYTES) return `"${defaultValue}"`;
  // JSON escapes are a subset of proto escapes.
  return type === Type.STRING ? JSON.stringify(defaultValue) : defaultValue;
}

/** The JSON name that a compiler gives to a field when the source has none. */
function toJsonName(name: string): string {
  return name.replaceAll(/_+(.?)/g, (_, letter: string) => letter.toUpperCase());
}

function printExtensions(fields: readonly FieldDescriptorProto[], printer: Printer): string[] {
  return fields.map((field) => block(`extend ${field.extendee}`, [printField(field, printer)]));
}

function printEnum(declaration: EnumDescriptorProto, { registry }: Printer): string {
  return block(`enum ${declaration.name}`, [
    ...statements(listOptions(EnumOptionsSchema, declaration.options, registry)),
    ...declaration.value.map(({ name, number, options }) => {
      return `${name} = ${number}${inBrackets(listOptions(EnumValueOptionsSchema, options, registry))};`;
    }),
    // An enum range includes its end; a message range does not.
    ...declaration.reservedRange.map(({ start, end }) => `reserved ${printRange({ start, end: end + 1 })};`),
    ...declaration.reservedName.map((name) => `reserved "${name}";`),
  ]);
}

function printRange({ start, end }: { readonly start: number; readonly end: number }): string {
  if (end >= endOfMax) return `${start} to max`;
  return end - 1 === start ? String(start) : `${start} to ${end - 1}`;
}

function statements(options: readonly PrintedOption[]): string[] {
  return options.map(({ name, value }) => `option ${name} = ${value};`);
}

function block(head: string, lines: readonly string[]): string {
  const inner = lines.flatMap((line) => line.split("\n")).map((line) => `  ${line}`);
  return [`${head} {`, ...inner, "}"].join("\n");
}
