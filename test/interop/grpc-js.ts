/** A client of @grpc/grpc-js that knows no proto of ours: it asks the server's reflection for them. */
import {
  create,
  createFileRegistry,
  type DescMessage,
  type DescMethod,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from "#gen/grpc/reflection/v1/reflection_pb.ts";

/** What a call came to; a refusal has the number of its code. */
export type GrpcJsOutcome =
  | { readonly answer: unknown }
  | { readonly code: number; readonly reason: string | undefined };

/** Makes a unary call with a request and an answer in JSON. */
export async function callGrpcJs(
  authority: string,
  service: string,
  method: string,
  request: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>>,
): Promise<GrpcJsOutcome> {
  const client = new Client(authority, credentials.createInsecure());
  try {
    const files = await askReflection(client, service);
    const desc = findMethod(files, service, method);
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    return await callUnary(client, desc, request, metadata);
  } finally {
    client.close();
  }
}

function callUnary(
  client: Client,
  desc: DescMethod,
  request: Readonly<Record<string, unknown>>,
  metadata: Metadata,
): Promise<GrpcJsOutcome> {
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      `/${desc.parent.typeName}/${desc.name}`,
      encoderOf(desc.input),
      (bytes) => toJson(desc.output, fromBinary(desc.output, bytes), { alwaysEmitImplicit: true }),
      create(desc.input, fromJson(desc.input, request as JsonValue)),
      metadata,
      (error, answer) => resolve(error === null ? { answer } : { code: error.code, reason: reasonOf(error) }),
    );
  });
}

/** Takes google.rpc.ErrorInfo out of the trailer that holds the status in full. */
function reasonOf(error: ServiceError): string | undefined {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  if (!Buffer.isBuffer(bytes)) return undefined;
  const any = fromBinary(StatusSchema, bytes).details.find(({ typeUrl }) => typeUrl.endsWith(".ErrorInfo"));
  return any && fromBinary(ErrorInfoSchema, any.value).reason;
}

function findMethod(files: FileDescriptorProto[], service: string, method: string): DescMethod {
  const [first] = files;
  if (first === undefined) throw new Error(`reflection has no file of ${service}`);
  const registry = createFileRegistry(first, (name) => files.find((file) => file.name === name));
  const desc = registry.getService(service)?.methods.find((candidate) => candidate.name === method);
  if (desc === undefined) throw new Error(`the file of ${service} does not declare ${method}`);
  return desc;
}

/** The file that declares a symbol, and after it all that it imports. */
function askReflection(client: Client, symbol: string): Promise<FileDescriptorProto[]> {
  const call = client.makeBidiStreamRequest(
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    encoderOf(ServerReflectionRequestSchema),
    (bytes) => fromBinary(ServerReflectionResponseSchema, bytes),
  );
  return new Promise((resolve, reject) => {
    call.on("error", reject);
    call.on("data", ({ messageResponse: { value } }) => {
      call.end();
      resolve(
        value.fileDescriptorProto.map((bytes: Uint8Array) => fromBinary(FileDescriptorProtoSchema, bytes)),
      );
    });
    call.write({ messageRequest: { case: "fileContainingSymbol", value: symbol } });
  });
}

function encoderOf<Desc extends DescMessage>(desc: Desc): (init: MessageInitShape<Desc>) => Buffer {
  return (init) => Buffer.from(toBinary(desc, create(desc, init)));
}
