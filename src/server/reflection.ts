/**
 * Describes the services and their messages to clients (grpc.reflection.v1 and v1alpha). Both versions have
 * the same messages, so one implementation serves both.
 */
import { type DescEnum, type DescFile, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, createServiceImplSpec, type ServiceImplSpec } from "@connectrpc/connect";
import {
  type ServerReflectionRequest,
  ServerReflection as ServerReflectionV1,
} from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionV1alpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { refuse } from "../errors.ts";
import { collectFiles, collectServiceFiles, describeFile } from "../transcoding/descriptors.ts";
import { limitReached } from "./limits.ts";

/** Creates both reflection services. They describe `services`, themselves, and all imports. */
export function createReflection(services: readonly ServiceImplSpec[]): ServiceImplSpec[] {
  const described = [...services.map(({ service }) => service), ServerReflectionV1, ServerReflectionV1alpha];
  // No RPC mentions the types of error details, but clients that display errors request them.
  const index = createIndex(collectServiceFiles(described));
  const names = described.map((service) => service.typeName).sort();
  async function* serverReflectionInfo(requests: AsyncIterable<Question>): AsyncGenerator<Answer> {
    const sent = new Set<DescFile>();
    let questions = 0;
    for await (const request of requests) {
      questions += 1;
      if (questions > maxQuestions)
        throw limitReached(
          "RATE_LIMITED",
          maxQuestions,
          `a reflection stream answers at most ${maxQuestions} requests; open another stream`,
        );
      yield {
        validHost: request.host,
        originalRequest: request,
        messageResponse: answer(request, index, names, sent),
      };
    }
  }
  return [
    createServiceImplSpec<typeof ServerReflectionV1>(ServerReflectionV1, {
      serverReflectionInfo: (requests) => serverReflectionInfo(requests),
    }),
    createServiceImplSpec<typeof ServerReflectionV1alpha>(ServerReflectionV1alpha, {
      // Both versions use the same bytes under different names.
      serverReflectionInfo: (requests) =>
        serverReflectionInfo(requests as unknown as AsyncIterable<Question>) as never,
    }),
  ];
}

type Question = ServerReflectionRequest;

/**
 * Maximum requests per stream, more than all names. A response can be a thousand times as large as its
 * request.
 */
const maxQuestions = 1000;

interface Answer {
  validHost: string;
  originalRequest: Question;
  messageResponse: AnswerBody;
}

type AnswerBody =
  | { case: "fileDescriptorResponse"; value: { fileDescriptorProto: Uint8Array[] } }
  | { case: "allExtensionNumbersResponse"; value: { baseTypeName: string; extensionNumber: number[] } }
  | { case: "listServicesResponse"; value: { service: { name: string }[] } }
  | { case: "errorResponse"; value: { errorCode: number; errorMessage: string } };

/** The files that declare each symbol. */
interface DescriptorIndex {
  readonly byFileName: ReadonlyMap<string, DescFile>;
  readonly bySymbol: ReadonlyMap<string, DescFile>;
  /** Extended message to extension number to file. */
  readonly byExtension: ReadonlyMap<string, ReadonlyMap<number, DescFile>>;
  readonly messages: ReadonlySet<string>;
}

/** A failed request gets an error response. Only a request without content ends the stream. */
function answer(
  request: Question,
  index: DescriptorIndex,
  services: readonly string[],
  sent: Set<DescFile>,
): AnswerBody {
  const question = request.messageRequest;
  switch (question.case) {
    case "fileByFilename":
      return fileAnswer(index.byFileName.get(question.value), `file ${question.value}`, sent);
    case "fileContainingSymbol":
      return fileAnswer(
        index.bySymbol.get(question.value.replace(/^\./, "")),
        `symbol ${question.value}`,
        sent,
      );
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = question.value;
      const file = index.byExtension.get(containingType)?.get(extensionNumber);
      return fileAnswer(file, `extension ${extensionNumber} of ${containingType}`, sent);
    }
    case "allExtensionNumbersOfType": {
      if (!index.messages.has(question.value)) return notFound(`message type ${question.value}`);
      const numbers = [...(index.byExtension.get(question.value)?.keys() ?? [])].sort((a, b) => a - b);
      return {
        case: "allExtensionNumbersResponse",
        value: { baseTypeName: question.value, extensionNumber: numbers },
      };
    }
    case "listServices":
      return { case: "listServicesResponse", value: { service: services.map((name) => ({ name })) } };
    default:
      throw refuse(
        "FIELD_INVALID",
        "message_request: is missing; request a file, a symbol, an extension or the services",
      );
  }
}

function notFound(what: string): AnswerBody {
  return {
    case: "errorResponse",
    value: { errorCode: Code.NotFound, errorMessage: `${what} is unknown to this server` },
  };
}

/** The requested file always comes first. Its imports follow unless this stream has already sent them. */
function fileAnswer(file: DescFile | undefined, what: string, sent: Set<DescFile>): AnswerBody {
  if (file === undefined) return notFound(what);
  const imports = collectFiles([file]).filter((candidate) => candidate !== file && !sent.has(candidate));
  const files = [file, ...imports.reverse()];
  for (const each of files) sent.add(each);
  const fileDescriptorProto = files.map(serialize);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

const serialized = new WeakMap<DescFile, Uint8Array>();

/** Serializes each file only once. */
function serialize(file: DescFile): Uint8Array {
  return serialized.getOrInsertComputed(file, () => toBinary(FileDescriptorProtoSchema, describeFile(file)));
}

function createIndex(files: readonly DescFile[]): DescriptorIndex {
  const bySymbol = new Map<string, DescFile>();
  const byExtension = new Map<string, Map<number, DescFile>>();
  const messages = new Set<string>();
  for (const file of files) {
    const add = (symbol: string): void => void bySymbol.set(symbol, file);
    for (const type of nestedTypes(file)) {
      add(type.typeName);
      if (type.kind === "message") {
        messages.add(type.typeName);
        for (const name of memberNames(type)) add(name);
      } else if (type.kind === "enum") {
        for (const name of valueNames(type)) add(name);
      } else if (type.kind === "service") {
        for (const method of type.methods) add(`${type.typeName}.${method.name}`);
      } else {
        byExtension.getOrInsert(type.extendee.typeName, new Map()).set(type.number, file);
      }
    }
  }
  return {
    byFileName: new Map(files.map((file) => [file.proto.name, file])),
    bySymbol,
    byExtension,
    messages,
  };
}

function memberNames(message: DescMessage): string[] {
  return [...message.fields, ...message.oneofs].map((member) => `${message.typeName}.${member.name}`);
}

/** Enum values are named as siblings of their enum, not as its children. */
function valueNames(desc: DescEnum): string[] {
  const scope = desc.typeName.slice(0, desc.typeName.length - desc.name.length);
  return desc.values.map((value) => `${scope}${value.name}`);
}
