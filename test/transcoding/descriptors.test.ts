import { create, createFileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, it } from "vitest";
import { collectFiles } from "../../src/transcoding/descriptors.ts";
import { file_testing_kinds } from "../gen/testing/kinds_pb.ts";
import { file_testing_library } from "../gen/testing/library_pb.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { jsonOf, refusalOf, send } from "./client.ts";
import { createRestServer, type RestServer } from "./rest-server.ts";
import { implementUnary, invalid } from "./rules.ts";

describe("a descriptor set loaded at run time, without generated code", () => {
  const calls: object[] = [];
  let transcoder: RestServer;

  beforeAll(() => {
    const file = collectFiles([file_testing_library]).map(({ proto }) => proto);
    const bytes = toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
    const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
    const service = registry.getService("testing.Library");
    if (service === undefined) throw new Error("testing.Library is not in the descriptor set");
    const spec = implementUnary(service, (rpc) => (request) => {
      calls.push({ rpc, ...request });
      return { title: rpc };
    });
    transcoder = createRestServer({ ...defaultBodyLimits, services: [spec] });
  });

  it("has the routes of its options", () => {
    const lines = transcoder.routes.map(({ httpMethod, template }) => `${httpMethod} ${template.text}`);
    expect(lines).toContain("GET /v1/books/{name}");
    expect(lines).toContain("PURGE /v1/{parent=shelves/*}/books");
  });

  it("serves its calls: JSON, raw bodies, refusals", async () => {
    const json = { body: '{"title":"a","isbn":"9007199254740993"}' };
    const answer = await send(transcoder, "POST /v1/shelves/1/books?bookId=b", json);
    expect(jsonOf(answer)).toMatchObject({ title: "CreateBook", pages: 0 });
    await send(transcoder, "PUT /v1/shelves/1/books/2/cover", {
      headers: { "content-type": "a/b" },
      body: "x",
    });
    expect(calls).toMatchObject([
      { parent: "shelves/1", bookId: "b", book: { title: "a", isbn: 9007199254740993n } },
      { rpc: "PutCover", cover: { contentType: "a/b" } },
    ]);
    const refused = await send(transcoder, "GET /v1/shelves/1/books/2?revision=x");
    expect(refusalOf(refused)).toEqual(invalid("FIELD_INVALID", "revision"));
  });
});

describe("collectFiles", () => {
  it("lists every file once, imports before the files that import them", () => {
    const files = collectFiles([file_testing_kinds, file_testing_kinds]);
    const names = files.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.at(-1)).toBe("testing/kinds");
    for (const file of files) {
      for (const dependency of file.dependencies)
        expect(files.indexOf(dependency)).toBeLessThan(files.indexOf(file));
    }
  });
});
