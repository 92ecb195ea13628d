import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  clone,
  create,
  createRegistry,
  type DescFile,
  fromBinary,
  type JsonValue,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FieldOptionsSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_struct,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { printProto } from "../../src/proto-archive/print-proto.ts";
import { findFiles } from "../../src/proto-archive/write.ts";
import { collectFiles, describeFile } from "../../src/transcoding/descriptors.ts";
import { file_testing_kinds } from "../gen/testing/kinds_pb.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const root = join(import.meta.dirname, "../..");
// testing/kinds.proto has every kind of field; struct.proto has a map of messages.
const files: readonly DescFile[] = collectFiles([
  ...(await findFiles()),
  file_testing_kinds,
  file_google_protobuf_struct,
]);
const registry = createRegistry(...files);
const folder = makeTemporaryDirectory(afterAll);
let compiled: Map<string, FileDescriptorProto>;

beforeAll(() => {
  for (const file of files) {
    const path = join(folder, file.proto.name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, printProto(describeFile(file), registry));
  }
  const buf = join(root, "node_modules/@bufbuild/buf/bin/buf");
  const image = execFileSync(process.execPath, [buf, "build", folder, "--output", "-#format=binpb"]);
  compiled = new Map(fromBinary(FileDescriptorSetSchema, image).file.map((file) => [file.name, file]));
}, 180_000);

describe("printProto", () => {
  it.each(files.map((file) => [file.proto.name, file] as const))(
    "prints %s so that a compiler reads the same descriptor",
    (name, file) => {
      const found = compiled.get(name);
      expect(found && comparable(found)).toEqual(comparable(describeFile(file)));
    },
  );

  it("keeps extension options", () => {
    const file = files.find(({ proto }) => proto.name === "kms/kms_service.proto");
    const text = file && printProto(file.proto, registry);
    expect(text).toContain("option (qsp.access) = ACCESS_AUTHENTICATED;");
    expect(text).toContain('option (google.api.http) = { get: "/api/kms/keys" };');
  });

  const group = create(FieldDescriptorProtoSchema, { name: "old", type: FieldDescriptorProto_Type.GROUP });
  it.each([
    [{ name: "new.proto", syntax: "editions" }, /new\.proto.*editions/],
    [{ name: "old.proto", messageType: [{ field: [group] }] }, /group/],
  ])("rejects an unknown edition and a group: $name", (file, message) => {
    expect(() => printProto(create(FileDescriptorProtoSchema, file), registry)).toThrow(message);
  });
});

/** A descriptor without source positions, and with nested types in one order. */
function comparable(file: FileDescriptorProto): JsonValue {
  const copy = clone(FileDescriptorProtoSchema, file);
  delete copy.sourceCodeInfo;
  // buf marks what it read as a module.
  delete copy.$unknown;
  if (copy.syntax === "") copy.syntax = "proto2";
  copy.messageType.forEach(sortMembers);
  for (const method of copy.service.flatMap((service) => service.method))
    if (method.options && toBinary(MethodOptionsSchema, method.options).length === 0) delete method.options;
  return toJson(FileDescriptorProtoSchema, copy, { registry });
}

function sortMembers(message: DescriptorProto): void {
  message.field.sort((a, b) => a.number - b.number);
  for (const field of message.field) {
    // Options without a value cannot be written.
    if (field.options && toBinary(FieldOptionsSchema, field.options).length === 0) delete field.options;
  }
  message.nestedType.sort((a, b) => (a.name < b.name ? -1 : 1));
  message.nestedType.forEach(sortMembers);
}
