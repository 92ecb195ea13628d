import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clone, create, fromBinary, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type FieldDescriptorProto,
  FieldOptionsSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
let scratch: string;

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "qsp-generated-"));
});

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function run(script: string, ...flags: string[]): Buffer {
  return execFileSync(process.execPath, [script, ...flags], { cwd: root });
}

function buf(...flags: string[]): Buffer {
  return run("node_modules/@bufbuild/buf/bin/buf", ...flags);
}

/** Reads all files of a folder, by their relative path. */
function readFolder(folder: string): Record<string, string> {
  const paths = globSync("**/*.ts", { cwd: folder }).toSorted();
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

describe("generated code", () => {
  it.each([
    ["gen", "buf.gen.yaml"],
    ["test/gen", "test/buf.gen.yaml"],
  ])("%s is up to date with the protos", { timeout: 180_000 }, (folder, template) => {
    buf("generate", "--template", template, "--output", scratch);
    const fresh = readFolder(join(scratch, folder));
    expect(Object.keys(fresh)).not.toEqual([]);
    expect(readFolder(join(root, folder))).toEqual(fresh);
  });
});

describe("the validate.proto printed from protovalidate's descriptor", () => {
  it("has all its messages, fields, enums and extensions", { timeout: 180_000 }, () => {
    const { proto } = file_buf_validate_validate;
    const image = buf("build", "node_modules/.proto", "--output", "-#format=binpb");
    const printed = fromBinary(FileDescriptorSetSchema, image).file.find(({ name }) => name === proto.name);
    expect(proto.messageType.length).toBeGreaterThan(20);
    expect(printed && wireOf(printed)).toEqual(wireOf(proto));
  });
});

/** Returns a descriptor without what is not on the wire: options except `deprecated`, and the order of fields. */
function wireOf(file: FileDescriptorProto): JsonValue {
  const copy = clone(FileDescriptorProtoSchema, file);
  delete copy.options;
  delete copy.sourceCodeInfo;
  copy.syntax = "proto2";
  copy.messageType.forEach(reduceMessage);
  copy.extension.forEach(reduceField);
  return toJson(FileDescriptorProtoSchema, copy);
}

function reduceMessage(message: DescriptorProto): void {
  message.field.sort((a, b) => a.number - b.number).forEach(reduceField);
  message.nestedType.forEach(reduceMessage);
  message.extension.forEach(reduceField);
}

function reduceField(field: FieldDescriptorProto): void {
  if (field.options?.deprecated) field.options = create(FieldOptionsSchema, { deprecated: true });
  else delete field.options;
}
