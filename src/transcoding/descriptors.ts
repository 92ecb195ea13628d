/** Collects and describes Protobuf files. */
import { clone, create, type DescFile, type DescService, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileOptions_OptimizeMode,
  FileOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { file_google_rpc_code } from "#gen/google/rpc/code_pb.ts";
import { file_google_rpc_error_details } from "#gen/google/rpc/error_details_pb.ts";
import { file_google_rpc_status } from "#gen/google/rpc/status_pb.ts";

/** Files that no RPC imports. Clients need them to read error details. */
export const errorFiles: readonly DescFile[] = [
  file_google_rpc_code,
  file_google_rpc_error_details,
  file_google_rpc_status,
];

/** Lists files and everything they import, each once, imports first. */
export function collectFiles(roots: Iterable<DescFile>): DescFile[] {
  const files = new Set<DescFile>();
  const visit = (file: DescFile): void => {
    if (files.has(file)) return;
    for (const dependency of file.dependencies) visit(dependency);
    files.add(file);
  };
  for (const root of roots) visit(root);
  return [...files];
}

/** Lists the files of services, with their imports and the files for error details. */
export function collectServiceFiles(services: readonly DescService[]): DescFile[] {
  return collectFiles([...services.map(({ file }) => file), ...errorFiles]);
}

/**
 * Describes a file for other programs.
 *
 * The descriptor packages omit the file options of two files. Without `go_package`, protoc-gen-go rejects a
 * file. The other options keep generated code separate from the code that languages ship themselves.
 */
export function describeFile({ proto }: DescFile): FileDescriptorProto {
  const options = leftOutOptions[proto.name];
  if (options === undefined || proto.options?.goPackage) return proto;
  const described = clone(FileDescriptorProtoSchema, proto);
  described.options = create(FileOptionsSchema, options);
  return described;
}

/** The original options of these files. */
const leftOutOptions: Readonly<Record<string, MessageInitShape<typeof FileOptionsSchema>>> = {
  "google/protobuf/descriptor.proto": {
    goPackage: "google.golang.org/protobuf/types/descriptorpb",
    javaPackage: "com.google.protobuf",
    javaOuterClassname: "DescriptorProtos",
    csharpNamespace: "Google.Protobuf.Reflection",
    objcClassPrefix: "GPB",
    ccEnableArenas: true,
    optimizeFor: FileOptions_OptimizeMode.SPEED,
  },
  "grpc/reflection/v1alpha/reflection.proto": {
    goPackage: "google.golang.org/grpc/reflection/grpc_reflection_v1alpha",
    javaPackage: "io.grpc.reflection.v1alpha",
    javaOuterClassname: "ServerReflectionProto",
    javaMultipleFiles: true,
  },
};
