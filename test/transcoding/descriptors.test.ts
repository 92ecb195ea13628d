import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { createFileRegistry, type DescService, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, it } from "vitest";
import { collectFiles } from "../../src/transcoding/descriptors.ts";
import { file_testing_kinds } from "../gen/testing/kinds_pb.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { jsonOf, refusalOf, send } from "./client.ts";
import { createRestServer, type RestServer } from "./rest-server.ts";
import { implementUnary, invalid } from "./rules.ts";

const root = join(import.meta.dirname, "../..");

/** Compiles the test protos to a descriptor set, such as a server would load from a file. */
function loadRegistry(): FileRegistry {
  const flags = ["build", "--as-file-descriptor-set", "--output", "-#format=binpb"];
  const image = execFileSync(process.execPath, ["node_modules/@bufbuild/buf/bin/buf", ...flags], {
    maxBuffer: 64 * 1024 * 1024,
    cwd: root,
  });
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, image));
}

describe("a descriptor set loaded at run time, without generated code", () => {
  let service: DescService;
  let transcoder: RestServer;
  const calls: object[] = [];

  beforeAll(() => {
    const found = loadRegistry().getService("testing.Library");
    if (found === undefined) throw new Error("testing.Library is not in the descriptor set");
    service = found;
    const spec = implementUnary(service, (rpc) => (request) => {
      calls.push({ rpc, ...request });
      return { title: rpc };
    });
    transcoder = createRestServer({ ...defaultBodyLimits, services: [spec] });
  }, 180_000);

  it("has the routes of its options", () => {
    const lines = transcoder.routes.map(({ httpMethod, template }) => `${httpMethod} ${template.text}`);
    expect(lines).toContain("GET /v1/{name=shelves/*/books/*}");
    expect(lines).toContain("GET /v1/books/{name}");
    expect(lines).toContain("PURGE /v1/{parent=shelves/*}/books");
  });

  it("serves its calls", async () => {
    const answer = await send(transcoder, "GET /v1/shelves/1/books/2?revision=3");
    expect(jsonOf(answer)).toMatchObject({ title: "GetBook", pages: 0 });
    expect(calls.at(-1)).toMatchObject({ rpc: "GetBook", name: "shelves/1/books/2", revision: 3 });
  });

  it("reads its bodies", async () => {
    const parts = { body: '{"title":"a","isbn":"9007199254740993"}' };
    await send(transcoder, "POST /v1/shelves/1/books?bookId=b", parts);
    expect(calls.at(-1)).toMatchObject({
      rpc: "CreateBook",
      parent: "shelves/1",
      bookId: "b",
      book: { title: "a", isbn: 9007199254740993n },
    });
  });

  it("accepts raw bodies", async () => {
    const parts = { headers: { "content-type": "image/png" }, body: "png" };
    await send(transcoder, "PUT /v1/shelves/1/books/2/cover", parts);
    expect(calls.at(-1)).toMatchObject({ rpc: "PutCover", cover: { contentType: "image/png" } });
  });

  it("rejects invalid bodies", async () => {
    const answer = await send(transcoder, "GET /v1/shelves/1/books/2?revision=x");
    expect(refusalOf(answer)).toEqual(invalid("FIELD_INVALID", "revision"));
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
