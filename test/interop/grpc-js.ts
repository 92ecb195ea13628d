/** A client of @grpc/grpc-js without our protos: it requests them by server reflection. */
import {
  create,
  createFileRegistry,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { Client, credentials, Metadata, type requestCallback, type ServiceError } from "@grpc/grpc-js";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from "#gen/grpc/reflection/v1/reflection_pb.ts";
import type { Members } from "../openapi/call-examples.ts";
import type { Call } from "./calls.ts";

/** Result of a call; a refusal has its code as a number. */
export type GrpcJsOutcome =
  | { readonly answer: unknown }
  | { readonly code: number; readonly reason: string | undefined };

/** Makes a call with a single answer, with requests and answer in JSON. */
export async function callGrpcJs(authority: string, call: Call): Promise<GrpcJsOutcome> {
  const client = new Client(authority, credentials.createInsecure());
  try {
    const desc = await findMethod(client, authority, call);
    return await callMethod(client, desc, call);
  } finally {
    client.close();
  }
}

function callMethod(client: Client, desc: DescMethod, { request, headers }: Call): Promise<GrpcJsOutcome> {
  return new Promise((resolve) => {
    const answer: requestCallback<unknown> = (error, message) =>
      resolve(error === null ? { answer: message } : { code: error.code, reason: reasonOf(error) });
    const [path, encode, decode] = [pathOf(desc), encoderOf(desc.input), decoderOf(desc)];
    const metadata = toMetadata(headers);
    if (desc.methodKind === "unary") {
      client.makeUnaryRequest(
        path,
        encode,
        decode,
        fromJson(desc.input, request as JsonValue),
        metadata,
        answer,
      );
      return;
    }
    const call = client.makeClientStreamRequest(path, encode, decode, metadata, answer);
    for (const message of request as readonly Members[])
      call.write(fromJson(desc.input, message as JsonValue));
    call.end();
  });
}

/** Makes a server-streaming call, until the signal ends it or the caller stops reading. */
export async function* watchGrpcJs(
  authority: string,
  toMake: Call,
  signal?: AbortSignal,
): AsyncGenerator<unknown> {
  const client = new Client(authority, credentials.createInsecure());
  signal?.addEventListener("abort", () => client.close(), { once: true });
  const desc = await findMethod(client, authority, toMake);
  const call = client.makeServerStreamRequest(
    pathOf(desc),
    encoderOf(desc.input),
    decoderOf(desc),
    fromJson(desc.input, toMake.request as JsonValue),
    toMetadata(toMake.headers),
  );
  signal?.addEventListener("abort", () => call.cancel(), { once: true });
  call.on("error", () => {}); // The reader receives the error too.
  try {
    yield* call;
  } finally {
    call.cancel();
    client.close();
  }
}

function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

function decoderOf({ output }: DescMethod): (bytes: Buffer) => unknown {
  return (bytes) => toJson(output, fromBinary(output, bytes), { alwaysEmitImplicit: true });
}

function toMetadata(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

/** Extracts google.rpc.ErrorInfo from the trailer with the full status. */
function reasonOf(error: ServiceError): string | undefined {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  if (!Buffer.isBuffer(bytes)) return undefined;
  const any = fromBinary(StatusSchema, bytes).details.find(({ typeUrl }) => typeUrl.endsWith(".ErrorInfo"));
  return any && fromBinary(ErrorInfoSchema, any.value).reason;
}

/** Services that reflection has described, by server and name. */
const described = new Map<string, Promise<DescService>>();

async function findMethod(client: Client, authority: string, { service, method }: Call): Promise<DescMethod> {
  const asking = described.getOrInsertComputed(`${authority} ${service}`, () => askService(client, service));
  const desc = (await asking).methods.find((candidate) => candidate.name === method);
  if (desc === undefined) throw new Error(`the file of ${service} does not declare ${method}`);
  return desc;
}

async function askService(client: Client, name: string): Promise<DescService> {
  // In a descriptor set, each file follows its imports.
  const file = (await askReflection(client, name)).toReversed();
  const service = createFileRegistry(create(FileDescriptorSetSchema, { file })).getService(name);
  if (service === undefined) throw new Error(`reflection has no file for ${name}`);
  return service;
}

/** Returns the file that declares a symbol, followed by all its imports. */
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
