/** Third-party generators and clients accept the protos as a server serves them. */
import { globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isMissing } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { execute, extractProtos, type ProtoServer, startProtoServer } from "./server.ts";

const atEnd = endAfterAll();
const folder = makeTemporaryDirectory(afterAll);
let server: ProtoServer;
let protos: string;
/** The protos that no language package contains: ours. */
let own: readonly string[];

beforeAll(async () => {
  server = await startProtoServer(atEnd);
  protos = await extractProtos(server, folder);
  own = globSync("**/*.proto", { cwd: protos }).filter(
    (path) => !/^(google|grpc|buf|envoy|udpa|validate|xds)\//.test(path),
  );
}, 180_000);

/** Runs protoc with the archive as its only include path, and lists the generated files. */
async function generate(...flags: readonly string[]): Promise<string[]> {
  const out = join(folder, `out-${readdirSync(folder).length}`);
  mkdirSync(out);
  await execute("protoc", ["-I", protos, ...flags.map((flag) => flag.replace("OUT", out)), ...own]);
  return globSync("**/*.*", { cwd: out }).sort();
}

const noProtoc = isMissing("protoc");
describe.skipIf(noProtoc)(`protoc generates from /protos.tar.gz${noProtoc ? " (needs protoc)" : ""}`, () => {
  const noGo = isMissing("protoc-gen-go") && " (needs protoc-gen-go)";
  it.skipIf(noGo)(`for Go${noGo || ""}`, { timeout: 180_000 }, async () => {
    const files = await generate("--go_out=OUT");
    expect(files).toHaveLength(own.length);
    expect(files).toContain("quantumsafe/kms/kms_service.pb.go");
  });

  it("for Java, one file per message, and for C#, in our own namespaces", { timeout: 180_000 }, async () => {
    const java = ["quantumsafe/kms/CreateKeyRequest.java", "quantumsafe/qsp/Access.java"];
    expect(await generate("--java_out=OUT")).toEqual(expect.arrayContaining(java));
    const files = await generate("--csharp_out=OUT", "--csharp_opt=base_namespace=");
    expect(files).toHaveLength(own.length);
    expect(files).toContain("QuantumSafe/Kms/KmsService.cs");
  });

  it("every file, third-party ones included", { timeout: 180_000 }, async () => {
    const set = join(folder, "all.binpb");
    const all = globSync("**/*.proto", { cwd: protos });
    await execute("protoc", ["-I", protos, "--include_imports", `--descriptor_set_out=${set}`, ...all]);
    expect(readFileSync(set).length).toBeGreaterThan(10_000);
  });
});

const noGrpcurl = isMissing("grpcurl");
describe.skipIf(noGrpcurl)(`grpcurl${noGrpcurl ? " (needs grpcurl)" : ""}`, { timeout: 180_000 }, () => {
  const authority = (): string => new URL(server.url).host;

  it("makes calls with only /protos.binpb", async () => {
    const set = join(folder, "protos.binpb");
    writeFileSync(set, await server.fetchBytes("/protos.binpb"));
    const call = ["-plaintext", "-protoset", set, "-d", '{"data":"aGVsbG8="}'];
    const { stdout } = await execute("grpcurl", [...call, authority(), "pqc.PqcService/SignData"]);
    expect(JSON.parse(stdout)).toMatchObject({ status: "success", algorithm: "ML-DSA-65" });
  });

  it("writes protos from reflection that protoc-gen-go accepts", async () => {
    const written = join(folder, "reflected");
    const words = ["-plaintext", "-proto-out-dir", written, authority(), "describe", "kms.KmsService"];
    await execute("grpcurl", words);
    const paths = globSync("**/*.proto", { cwd: written });
    expect(paths).toContain("kms/kms_service.proto");
    for (const path of paths)
      expect(readFileSync(join(written, path), "utf8"), path).toMatch(/^option go_package = /m);
  });
});
