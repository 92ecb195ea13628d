import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createFileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeAll, describe, expect, it } from "vitest";
import { ServerReflection as V1 } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as V1alpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { endAfterAll } from "../support/at-end.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";
import { execute, extractProtos, type ProtoServer, startProtoServer } from "./server.ts";

const root = join(import.meta.dirname, "../..");
const atEnd = endAfterAll();
let server: ProtoServer;

beforeAll(async () => {
  server = await startProtoServer(atEnd);
}, 180_000);

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(server.url + path, { headers });
}

describe.each([
  ["/protos.binpb", "application/x-protobuf"],
  ["/protos.tar.gz", "application/gzip"],
])("GET %s", { timeout: 180_000 }, (path, type) => {
  it(`returns ${type} as a download`, async () => {
    const { status, headers } = await get(path);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe(type);
    expect(headers.get("content-disposition")).toBe(`attachment; filename="${path.slice(1)}"`);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });
});

it("every server returns the same bytes", { timeout: 180_000 }, async () => {
  const other = await startProtoServer(atEnd);
  for (const path of ["/protos.binpb", "/protos.tar.gz"])
    expect(await other.fetchBytes(path)).toEqual(await server.fetchBytes(path));
});

describe("/protos.tar.gz", () => {
  it("is not compressed a second time", async () => {
    const { headers } = await get("/protos.tar.gz", { "accept-encoding": "gzip, br" });
    expect(headers.get("content-encoding")).toBeNull();
  });

  it("contains our sources with comments, readable by everyone and without timestamps", async () => {
    const folder = await extractProtos(server, makeTemporaryDirectory());
    // qsp k8s-kms serves the Kubernetes protos, and no server does.
    const served = (await loadPackages()).flatMap(({ files }) => files.map(({ name }) => `${name}.proto`));
    // If an extension is absent, its service's protos still exist; nothing else imports the media type.
    const isGiven = (path: string) => served.includes(path) || !/(_service|media_type)\.proto$/.test(path);
    const protos = globSync("**/*.proto", { cwd: join(root, "proto"), exclude: ["kubernetes/**"] });
    const own = protos.filter(isGiven);
    expect(existsSync(join(folder, "kubernetes"))).toBe(false);
    expect(own.length).toBeGreaterThan(10);
    for (const path of own) {
      expect(readFileSync(join(folder, path), "utf8")).toBe(readFileSync(join(root, "proto", path), "utf8"));
      expect(statSync(join(folder, path))).toMatchObject({ mtimeMs: 0, mode: 0o100644 });
    }
  });

  it("compiles to /protos.binpb, with nothing else on the include path", { timeout: 180_000 }, async () => {
    const folder = await extractProtos(server, makeTemporaryDirectory());
    const buf = join(root, "node_modules/@bufbuild/buf/bin/buf");
    const image = `${folder}.binpb`;
    await execute(process.execPath, [buf, "build", folder, "--output", image]);
    const { file: compiled } = fromBinary(FileDescriptorSetSchema, readFileSync(image));
    // print-proto.test.ts compares the content of the files.
    const namesOf = (files: readonly FileDescriptorProto[]) => files.map(({ name }) => name).sort();
    expect(namesOf(compiled)).toEqual(namesOf(await readSet()));
  });

  it("equals what `npm run protos` writes, except for extension services", { timeout: 180_000 }, async () => {
    const temporary = makeTemporaryDirectory();
    const folder = await extractProtos(server, temporary);
    // As npm runs it: in our folder, with the caller's folder in INIT_CWD.
    const env = { ...process.env, npm_lifecycle_event: "protos", INIT_CWD: temporary };
    await execute(process.execPath, [join(root, "src/proto-archive/write.ts"), "written"], { env });
    const written = join(temporary, "written");
    for (const path of globSync("**/*.proto", { cwd: folder }))
      expect(readFileSync(join(written, path), "utf8"), path).toBe(readFileSync(join(folder, path), "utf8"));
  });
});

it("npm run protos rejects a second folder with a message and exit code 2", {
  timeout: 180_000,
}, async () => {
  const run = execute(process.execPath, [join(root, "src/proto-archive/write.ts"), "a", "b"]);
  await expect(run).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining("name one folder") });
});

describe("/protos.binpb", { timeout: 180_000 }, () => {
  it("is one self-contained set, each file once, imports first", async () => {
    const seen = new Set<string>();
    for (const { name, dependency } of await readSet()) {
      expect(seen).not.toContain(name);
      expect(dependency.filter((path) => !seen.has(path))).toEqual([]);
      seen.add(name);
    }
    const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, await binpb()));
    expect(registry.getService("kms.KmsService")?.methods.length).toBeGreaterThan(10);
    expect(registry.getMessage("google.rpc.BadRequest")).toBeDefined();
  });

  it("has Go package options in every file, and Java and C# options in ours", async () => {
    const files = await readSet();
    expect(files.filter(({ options }) => !options?.goPackage).map(({ name }) => name)).toEqual([]);
    const own = files.filter(({ name }) => !/^(google|grpc|buf|envoy|udpa|validate|xds)\//.test(name));
    expect(own.length).toBeGreaterThan(10);
    for (const { package: name, options } of own) {
      expect(options).toMatchObject({
        goPackage: `quantumsafe/${name};${name}`,
        javaPackage: `quantumsafe.${name}`,
        javaMultipleFiles: true,
        csharpNamespace: `QuantumSafe.${name.charAt(0).toUpperCase()}${name.slice(1)}`,
      });
    }
  });

  it.each([
    ["v1", V1],
    ["v1alpha", V1alpha],
  ] as const)("matches reflection %s, file by file", async (_, service) => {
    const transport = createGrpcTransport({ baseUrl: server.url });
    const client = createClient(service as typeof V1, transport);
    const files = await readSet();
    async function* ask() {
      for (const { name } of files)
        yield { messageRequest: { case: "fileByFilename", value: name } } as const;
    }
    const answers = await Array.fromAsync(client.serverReflectionInfo(ask()));
    const served = answers.flatMap(({ messageResponse }) =>
      messageResponse.case === "fileDescriptorResponse" ? messageResponse.value.fileDescriptorProto : [],
    );
    const named = (bytes: Uint8Array) =>
      [fromBinary(FileDescriptorProtoSchema, bytes).name, Buffer.from(bytes)] as const;
    const wanted = files.map((file) => toBinary(FileDescriptorProtoSchema, file));
    expect(new Map(served.map(named))).toEqual(new Map(wanted.map(named)));
  });

  it("contains only the services that the server serves", async () => {
    const small = await startProtoServer(atEnd, ["--services", "iot"]);
    const { file } = fromBinary(FileDescriptorSetSchema, await small.fetchBytes("/protos.binpb"));
    const names = file.map(({ name }) => name);
    expect(names).toContain("iot/iot_service.proto");
    expect(names).not.toContain("kms/kms_service.proto");
  });
});

function binpb(): Promise<Uint8Array> {
  return server.fetchBytes("/protos.binpb");
}

async function readSet() {
  return fromBinary(FileDescriptorSetSchema, await binpb()).file;
}
