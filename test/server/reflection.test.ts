import { createFileRegistry, fromBinary, getOption, type MessageInitShape } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "vitest";
import { http } from "#gen/google/api/annotations_pb.ts";
import {
  type ServerReflectionRequestSchema,
  ServerReflection as V1,
} from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as V1alpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { access } from "#gen/qsp/access_pb.ts";
import { servicePackages } from "../../src/services/registry.ts";
import { endAfterAll } from "../support/at-end.ts";
import { refusal } from "../support/refusal.ts";
import { startApp } from "../support/start-app.ts";
import { createOutgoing } from "../support/streams.ts";
import { connectGrpc } from "./probe.ts";

type Question = MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"];

const atEnd = endAfterAll();
let url: string;
beforeAll(async () => {
  ({ url } = await startApp(atEnd, [], servicePackages));
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

  async function filesOf(question: Question, ask = open()): Promise<FileDescriptorProto[]> {
    const { messageResponse } = await ask(question);
    if (messageResponse.case !== "fileDescriptorResponse") throw new Error(`got ${messageResponse.case}`);
    return messageResponse.value.fileDescriptorProto.map((bytes: Uint8Array) =>
      fromBinary(FileDescriptorProtoSchema, bytes),
    );
  }
  const ofFile = (value: string): Question => ({ case: "fileByFilename", value });
  const ofSymbol = (value: string): Question => ({ case: "fileContainingSymbol", value });
  const ofExtension = (extensionNumber: number): Question => ({
    case: "fileContainingExtension",
    value: {
      $typeName: "grpc.reflection.v1.ExtensionRequest",
      containingType: "google.protobuf.MethodOptions",
      extensionNumber,
    },
  });
  const extensionsOf = (value: string): Question => ({ case: "allExtensionNumbersOfType", value });

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
    ["a service", ofSymbol("pqc.PqcService"), "pqc/pqc_service.proto"],
    ["a method", ofSymbol("pqc.PqcService.SignData"), "pqc/pqc_service.proto"],
    ["a message", ofSymbol("pqc.SignDataRequest"), "pqc/pqc_service.proto"],
    ["a field", ofSymbol("pqc.SignDataRequest.data"), "pqc/pqc_service.proto"],
    ["an enum", ofSymbol("qsp.Access"), "qsp/access.proto"],
    ["a value of an enum", ofSymbol("qsp.ACCESS_PUBLIC"), "qsp/access.proto"],
    ["an extension", ofSymbol("qsp.access"), "qsp/access.proto"],
    ["an extension by its number", ofExtension(72_295_728), "google/api/annotations.proto"],
    ["a nested message", ofSymbol("google.protobuf.DescriptorProto.ExtensionRange"), descriptor],
    ["a value of a nested enum", ofSymbol("google.protobuf.FieldDescriptorProto.TYPE_BYTES"), descriptor],
    ["a oneof", ofSymbol("google.api.HttpRule.pattern"), "google/api/http.proto"],
    ["a type of the errors' details", ofSymbol("google.rpc.ErrorInfo"), "google/rpc/error_details.proto"],
    ["its own name", ofFile(descriptor), descriptor],
  ])("finds the file of %s, and sends it first", async (_what, question, name) => {
    const [file] = await filesOf(question);
    expect(file?.name).toBe(name);
  });

  it("sends a file with all its imports, in an order from which it can be built with its options", async () => {
    const files = await filesOf(ofSymbol("pqc.TokenService"));
    const names = files.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { dependency } of files) expect(names).toEqual(expect.arrayContaining(dependency));
    const [first] = files;
    if (first === undefined) throw new Error("no file");
    const registry = createFileRegistry(first, (name) => files.find((file) => file.name === name));
    const method = registry.getService("pqc.TokenService")?.method.getSecureData;
    if (method === undefined) throw new Error("no method");
    expect(getOption(method, http).pattern).toEqual({ case: "get", value: "/api/secure" });
    expect(getOption(method, access)).toBe(3);
  });

  it("does not repeat imports on a stream, but always sends the requested file", async () => {
    const ask = open();
    const question = ofFile("pqc/pqc_service.proto");
    const namesOf = async (question: Question, of = ask) =>
      (await filesOf(question, of)).map(({ name }) => name);
    const first = await namesOf(question);
    expect(first.length).toBeGreaterThan(1);
    expect(await namesOf(question)).toEqual(["pqc/pqc_service.proto"]);
    expect(await namesOf(ofFile("pqc/token_service.proto"))).toEqual(["pqc/token_service.proto"]);
    // A different stream does not know about it.
    expect(await namesOf(question, open())).toEqual(first);
  });

  it.each([
    ["google.protobuf.MethodOptions", [52_001, 52_002, 52_003, 52_004, 52_007, 72_295_728]],
    ["pqc.SignDataRequest", []],
  ])("lists the extension numbers of %s in order", async (baseTypeName, extensionNumber) => {
    const { messageResponse } = await open()(extensionsOf(baseTypeName));
    const value = { baseTypeName, extensionNumber };
    expect(messageResponse).toMatchObject({ case: "allExtensionNumbersResponse", value });
  });

  it.each([
    ["a file", ofFile("nobody.proto")],
    ["a symbol", ofSymbol("pqc.Nobody")],
    ["a method", ofSymbol("pqc.PqcService.Nothing")],
    ["a package", ofSymbol("pqc")],
    ["a message", extensionsOf("pqc.Nobody")],
    ["an enum instead of a message", extensionsOf("qsp.Access")],
    ["an extension", ofExtension(1)],
  ])("answers NOT_FOUND for %s that does not exist, and continues", async (_what, question) => {
    const ask = open();
    const { messageResponse } = await ask(question);
    expect(messageResponse).toMatchObject({ case: "errorResponse", value: { errorCode: 5 } });
    expect(messageResponse.value.errorMessage).toMatch(/\S/);
    const next = await ask({ case: "listServices", value: "" });
    expect(next.messageResponse.case).toBe("listServicesResponse");
  });

  it("ends the stream with INVALID_ARGUMENT for a request without content", async () => {
    expect(await refusal(open()(undefined))).toMatchObject({ code: "InvalidArgument" });
  });
});
