/**
 * Copies third-party protos into node_modules/.proto, where buf.yaml expects them: `node src/setup/protos.ts`. The
 * npm scripts that need them, including the tests, run it first.
 *
 * All protos come from installed packages, so generation needs neither copies in this repository nor buf's registry.
 */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRegistry } from "@bufbuild/protobuf";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { printProto } from "../proto-archive/print-proto.ts";

const modules = join(import.meta.dirname, "../../node_modules");
const target = join(modules, ".proto");

/** Import path of each proto → its file in node_modules. */
const copied: Readonly<Record<string, string>> = {
  "google/api/annotations.proto": "google-proto-files/google/api/annotations.proto",
  "google/api/client.proto": "google-proto-files/google/api/client.proto",
  "google/api/field_behavior.proto": "google-proto-files/google/api/field_behavior.proto",
  "google/api/http.proto": "google-proto-files/google/api/http.proto",
  "google/api/httpbody.proto": "google-proto-files/google/api/httpbody.proto",
  "google/api/launch_stage.proto": "google-proto-files/google/api/launch_stage.proto",
  "google/api/resource.proto": "google-proto-files/google/api/resource.proto",
  "google/cloud/kms/v1/resources.proto": "google-proto-files/google/cloud/kms/v1/resources.proto",
  "google/cloud/kms/v1/service.proto": "google-proto-files/google/cloud/kms/v1/service.proto",
  "google/cloud/location/locations.proto": "google-proto-files/google/cloud/location/locations.proto",
  "google/longrunning/operations.proto": "google-proto-files/google/longrunning/operations.proto",
  "google/rpc/code.proto": "google-proto-files/google/rpc/code.proto",
  "google/rpc/error_details.proto": "google-proto-files/google/rpc/error_details.proto",
  "google/rpc/status.proto": "google-proto-files/google/rpc/status.proto",
  "grpc/health/v1/health.proto": "grpc-health-check/proto/health/v1/health.proto",
  "grpc/reflection/v1/reflection.proto": "@grpc/reflection/build/proto/grpc/reflection/v1/reflection.proto",
  "grpc/reflection/v1alpha/reflection.proto":
    "@grpc/reflection/build/proto/grpc/reflection/v1alpha/reflection.proto",
  ...from("@grpc/grpc-js-xds/deps/envoy-api", [
    "envoy/annotations/deprecation.proto",
    "envoy/config/core/v3/address.proto",
    "envoy/config/core/v3/backoff.proto",
    "envoy/config/core/v3/base.proto",
    "envoy/config/core/v3/extension.proto",
    "envoy/config/core/v3/http_uri.proto",
    "envoy/config/core/v3/socket_option.proto",
    "envoy/service/auth/v3/attribute_context.proto",
    "envoy/service/auth/v3/external_auth.proto",
    "envoy/type/v3/http_status.proto",
    "envoy/type/v3/percent.proto",
    "envoy/type/v3/semantic_version.proto",
  ]),
  ...from("@grpc/grpc-js-xds/deps/xds", [
    "udpa/annotations/migrate.proto",
    "udpa/annotations/status.proto",
    "udpa/annotations/versioning.proto",
    "xds/annotations/v3/status.proto",
    "xds/core/v3/context_params.proto",
  ]),
  ...from("@grpc/grpc-js-xds/deps/protoc-gen-validate", ["validate/validate.proto"]),
};

rmSync(target, { recursive: true, force: true });
for (const [importPath, source] of Object.entries(copied)) {
  copyFileSync(join(modules, source), makePlace(importPath));
}
// No npm package ships validate.proto; protovalidate contains its descriptor.
const { proto } = file_buf_validate_validate;
writeFileSync(makePlace(proto.name), printProto(proto, createRegistry(file_buf_validate_validate)));

function makePlace(importPath: string): string {
  const path = join(target, importPath);
  mkdirSync(dirname(path), { recursive: true });
  return path;
}

/** Protos that a package ships under their import paths. */
function from(folder: string, importPaths: readonly string[]): Record<string, string> {
  return Object.fromEntries(importPaths.map((path) => [path, `${folder}/${path}`]));
}
