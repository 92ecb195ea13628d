import { isFieldSet } from "@bufbuild/protobuf";
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
} from "@bufbuild/protobuf/wkt";
import {
  FieldDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";

/** The largest field number, and the end that protoc gives to `to max`, exclusive. */
const endOfMax = 536_870_912;

/**
 * Prints a proto2 file from its descriptor, so that a compiler reads the same names, numbers, types and labels.
 *
 * Covers what buf/validate/validate.proto uses: no services, groups, maps or nested types. Of the options it
 * keeps `deprecated`; comments and other options change nothing for those who import the file.
 *
 * @throws when the file is not proto2.
 */
export function printProto(file: FileDescriptorProto): string {
  if (file.syntax !== "" && file.syntax !== "proto2")
    throw new Error(`${file.name} is ${file.syntax}, not proto2`);
  return [
    `syntax = "proto2";`,
    `package ${file.package};`,
    ...file.dependency.map((path) => `import "${path}";`),
    ...file.messageType.map(printMessage),
    ...file.enumType.map(printEnum),
    ...file.extension.map((field) => `extend ${field.extendee} {\n${printField(field)}\n}`),
    "",
  ].join("\n");
}

function printMessage(message: DescriptorProto): string {
  const plain = message.field.filter((field) => !isInOneof(field));
  return [
    `message ${message.name} {`,
    ...(message.options?.deprecated ? ["  option deprecated = true;"] : []),
    ...plain.map(printField),
    ...message.oneofDecl.map((oneof, index) => {
      const members = message.field.filter((field) => isInOneof(field) && field.oneofIndex === index);
      return `  oneof ${oneof.name} {\n${members.map(printOneofField).join("\n")}\n  }`;
    }),
    ...message.extensionRange.map(({ start, end }) => `  extensions ${printRange(start, end)};`),
    ...message.reservedRange.map(({ start, end }) => `  reserved ${printRange(start, end)};`),
    ...message.reservedName.map((name) => `  reserved "${name}";`),
    "}",
  ].join("\n");
}

/** An index that is not set reads as 0, so it cannot tell. */
function isInOneof(field: FieldDescriptorProto): boolean {
  return isFieldSet(field, FieldDescriptorProtoSchema.field.oneofIndex);
}

function printEnum(declaration: EnumDescriptorProto): string {
  const values = declaration.value.map(({ name, number, options }) => {
    return `  ${name} = ${number}${options?.deprecated ? " [deprecated = true]" : ""};`;
  });
  const alias = declaration.options?.allowAlias ? ["  option allow_alias = true;"] : [];
  const reserved = [
    // Unlike a message's ranges, an enum's include their end.
    ...declaration.reservedRange.map(({ start, end }) => `  reserved ${start} to ${end};`),
    ...declaration.reservedName.map((name) => `  reserved "${name}";`),
  ];
  return [`enum ${declaration.name} {`, ...alias, ...values, ...reserved, "}"].join("\n");
}

function printField(field: FieldDescriptorProto): string {
  return `  ${Label[field.label].toLowerCase()}${printOneofField(field)}`;
}

/** Prints a field without its label, which a member of a oneof has not. */
function printOneofField(field: FieldDescriptorProto): string {
  const type = field.typeName === "" ? Type[field.type].toLowerCase() : field.typeName;
  const options = [
    ...(field.defaultValue === "" ? [] : [`default = ${printDefault(field)}`]),
    ...(field.options?.deprecated ? ["deprecated = true"] : []),
  ];
  return `  ${type} ${field.name} = ${field.number}${options.length === 0 ? "" : ` [${options.join(", ")}]`};`;
}

function printDefault({ type, defaultValue }: FieldDescriptorProto): string {
  return type === Type.STRING ? JSON.stringify(defaultValue) : defaultValue;
}

function printRange(start: number, end: number): string {
  return end >= endOfMax ? `${start} to max` : `${start} to ${end - 1}`;
}
