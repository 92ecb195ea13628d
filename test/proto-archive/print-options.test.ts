import { create, createRegistry } from "@bufbuild/protobuf";
import { FileOptionsSchema, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { file_google_api_annotations } from "#gen/google/api/annotations_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { listOptions } from "../../src/proto-archive/print-options.ts";

const registry = createRegistry(file_google_api_annotations);

it("a quoted option is escaped where a parser would stop or misread it", () => {
  const options = create(FileOptionsSchema, { goPackage: 'a "b" \\ \n {', deprecated: true });
  expect(listOptions(FileOptionsSchema, options, registry)).toEqual([
    { name: "go_package", value: String.raw`"a \"b\" \\ \n {"` },
    { name: "deprecated", value: "true" },
  ]);
});

it("a message option is on one line, including nested messages", () => {
  const { options } = KmsService.method.getKey.proto;
  const names = ["{key_id}", "{key_id=name/**}", "{key_id=user/*/name/**}"];
  const [get, ...others] = names.map((name) => `get: "/api/kms/key/${name}"`);
  const more = others.map((binding) => `additional_bindings: { ${binding} }`).join(" ");
  expect(listOptions(MethodOptionsSchema, options, registry)).toContainEqual({
    name: "(google.api.http)",
    value: `{ ${get} ${more} }`,
  });
});
