import { createFileRegistry, fromBinary, getOption, type MessageInitShape } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { http } from "#gen/google/api/annotations_pb.ts";
import {
  type ServerReflectionRequestSchema,
  ServerReflection as V1,
} from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as V1alpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { access } from "#gen/qsp/access_pb.ts";
import { createApp } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { refusal } from "../support/refusal.ts";
import { createOutgoing } from "../support/streams.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { connectGrpc } from "./probe.ts";

type Question = MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"];

const dataDir = makeTemporaryDirectory(afterAll);
let url: string;
beforeAll(async () => {
  const config = readConfig(["--data-dir", dataDir], {});
  const app = await createApp(config, pino({ level: "silent" }));
  const { port } = await app.server.listen(0, "127.0.0.1");
  url = `http://127.0.0.1:${port}`;
  return () => {
    app.server.destroy();
    return app.close();
  };
});

describe.each([
  ["v1", V1],
  ["v1alpha", V1alpha],
] as const)("grpc.reflection.%s", (_version, service) => {
  /** Opens a stream; each call sends one request and returns its response. */
  function open() {
    const client = createClient(service as typeof V1, connectGrpc(url));
    const questions = createOutgoing<MessageInitShape<typeof ServerReflectionRequestSchema>>();
    const answers = client.serverReflectionInfo(questions)[Symbol.asyncIterator]();
    return async (messageRequest: Question, host = "") => {
      questions.send({ host, ...(messageRequest && { messageRequest }) });
      return (await answers.next()).value;
    };
  }

  async function filesOf(ask: ReturnType<typeof open>, question: Question): Promise<FileDescriptorProto[]> {
    const { messageResponse } = await ask(question);
    if (messageResponse.case !== "fileDescriptorResponse") throw new Error(`got ${messageResponse.case}`);
    return messageResponse.value.fileDescriptorProto.map((bytes: Uint8Array) =>
      fromBinary(FileDescriptorProtoSchema, bytes),
    );
  }

  it("lists the services in order, including reflection and health", async () => {
    const { messageResponse } = await open()({ case: "listServices", value: "*" });
    expect(messageResponse.value.service.map(({ name }: { name: string }) => name)).toEqual([
      "blockchain.BlockchainService",
      "dapp.DappService",
      "defi.DefiService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
      "iot.IotService",
      "kms.KmsService",
      "nft.NftService",
      "pqc.IdentityLogService",
      "pqc.PqcService",
      "pqc.TokenService",
      "vpn.VpnService",
      "wallet.WalletService",
    ]);
  });

  it("echoes the request and its host", async () => {
    const question = { case: "listServices", value: "whatever" } as const;
    const { validHost, originalRequest } = await open()(question, "example.org");
    expect(validHost).toBe("example.org");
    expect(originalRequest).toMatchObject({ host: "example.org", messageRequest: question });
  });

  const descriptor = "google/protobuf/descriptor.proto";
  it.each([
    ["a service", "pqc.PqcService", "pqc/pqc_service.proto"],
    ["a method", "pqc.PqcService.SignData", "pqc/pqc_service.proto"],
    ["a message", "pqc.SignDataRequest", "pqc/pqc_service.proto"],
    ["a field", "pqc.SignDataRequest.data", "pqc/pqc_service.proto"],
    ["an enum", "qsp.Access", "qsp/access.proto"],
    ["a value of an enum", "qsp.ACCESS_PUBLIC", "qsp/access.proto"],
    ["an extension", "qsp.access", "qsp/access.proto"],
    ["a nested message", "google.protobuf.DescriptorProto.ExtensionRange", descriptor],
    ["a value of a nested enum", "google.protobuf.FieldDescriptorProto.TYPE_BYTES", descriptor],
    ["a oneof", "google.api.HttpRule.pattern", "google/api/http.proto"],
    ["a type of the errors' details", "google.rpc.ErrorInfo", "google/rpc/error_details.proto"],
  ])("finds the file of %s, and sends it first", async (_what, value, name) => {
    const [file] = await filesOf(open(), { case: "fileContainingSymbol", value });
    expect(file?.name).toBe(name);
  });

  it("sends a file with all its imports, in an order from which it can be built", async () => {
    const files = await filesOf(open(), { case: "fileContainingSymbol", value: "pqc.PqcService" });
    const names = files.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { dependency } of files) expect(names).toEqual(expect.arrayContaining(dependency));
    const [first] = files;
    if (first === undefined) throw new Error("no file");
    const registry = createFileRegistry(first, (name) => files.find((file) => file.name === name));
    expect(registry.getService("pqc.PqcService")?.methods).toHaveLength(9);
  });

  it("does not repeat imports on a stream, but always sends the requested file", async () => {
    const ask = open();
    const question: Question = { case: "fileByFilename", value: "pqc/pqc_service.proto" };
    const first = await filesOf(ask, question);
    expect(first.length).toBeGreaterThan(1);
    expect((await filesOf(ask, question)).map(({ name }) => name)).toEqual(["pqc/pqc_service.proto"]);
    const other = await filesOf(ask, { case: "fileByFilename", value: "pqc/token_service.proto" });
    expect(other.map(({ name }) => name)).toEqual(["pqc/token_service.proto"]);
    // A different stream does not know about it.
    expect(await filesOf(open(), question)).toHaveLength(first.length);
  });

  it("has every file that any file imports, including google/protobuf", async () => {
    const ask = open();
    const { messageResponse } = await ask({ case: "listServices", value: "" });
    const wanted = new Set<string>();
    for (const { name } of messageResponse.value.service) {
      for (const file of await filesOf(open(), { case: "fileContainingSymbol", value: name })) {
        for (const dependency of file.dependency) wanted.add(dependency);
      }
    }
    expect([...wanted]).toContain("google/protobuf/descriptor.proto");
    for (const value of wanted) {
      const [file] = await filesOf(ask, { case: "fileByFilename", value });
      expect(file?.name).toBe(value);
    }
  });

  it("keeps custom options", async () => {
    const files = await filesOf(open(), { case: "fileContainingSymbol", value: "pqc.TokenService" });
    const [first] = files;
    if (first === undefined) throw new Error("no file");
    const registry = createFileRegistry(first, (name) => files.find((file) => file.name === name));
    const method = registry.getService("pqc.TokenService")?.method.getSecureData;
    if (method === undefined) throw new Error("no method");
    expect(getOption(method, http).pattern).toEqual({ case: "get", value: "/api/secure" });
    expect(getOption(method, access)).toBe(3);
  });

  it("lists the extension numbers of a message in order", async () => {
    const { messageResponse } = await open()({
      case: "allExtensionNumbersOfType",
      value: "google.protobuf.MethodOptions",
    });
    expect(messageResponse.value).toMatchObject({
      baseTypeName: "google.protobuf.MethodOptions",
      extensionNumber: [52_001, 52_002, 52_003, 52_004, 52_007, 72_295_728],
    });
  });

  it("lists no extension numbers for a message without extensions", async () => {
    const { messageResponse } = await open()({
      case: "allExtensionNumbersOfType",
      value: "pqc.SignDataRequest",
    });
    expect(messageResponse).toMatchObject({
      case: "allExtensionNumbersResponse",
      value: { extensionNumber: [] },
    });
  });

  it("finds the file of an extension", async () => {
    const [file] = await filesOf(open(), {
      case: "fileContainingExtension",
      value: { containingType: "google.protobuf.MethodOptions", extensionNumber: 72_295_728 },
    } as Question);
    expect(file?.name).toBe("google/api/annotations.proto");
  });

  it.each([
    ["a file", { case: "fileByFilename", value: "nobody.proto" }],
    ["a symbol", { case: "fileContainingSymbol", value: "pqc.Nobody" }],
    ["a method", { case: "fileContainingSymbol", value: "pqc.PqcService.Nothing" }],
    ["a package", { case: "fileContainingSymbol", value: "pqc" }],
    ["a message", { case: "allExtensionNumbersOfType", value: "pqc.Nobody" }],
    ["an enum instead of a message", { case: "allExtensionNumbersOfType", value: "qsp.Access" }],
    [
      "an extension",
      {
        case: "fileContainingExtension",
        value: { containingType: "google.protobuf.MethodOptions", extensionNumber: 1 },
      },
    ],
  ])("answers NOT_FOUND for %s that does not exist, and continues", async (_what, question) => {
    const ask = open();
    const { messageResponse } = await ask(question as Question);
    expect(messageResponse).toMatchObject({ case: "errorResponse", value: { errorCode: 5 } });
    expect(messageResponse.value.errorMessage).toMatch(/\S/);
    expect((await ask({ case: "listServices", value: "" })).messageResponse.case).toBe(
      "listServicesResponse",
    );
  });

  it("ends the stream with INVALID_ARGUMENT for a request without content", async () => {
    expect(await refusal(open()(undefined))).toMatchObject({ code: "InvalidArgument" });
  });
});
