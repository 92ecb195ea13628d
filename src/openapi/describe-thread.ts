/** The thread of describe-services.ts: creates the description, sends it in each format, and exits. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createServiceImplSpec } from "@connectrpc/connect";
import { stringify } from "yaml";
import { comments } from "#gen/comments.ts";
import { comments as googleComments } from "#gen/google/comments.ts";
import answers from "../../docs/answers.json" with { type: "json" };
import { packageFolder } from "../program-files.ts";
import { compileRoutes } from "../transcoding/routes.ts";
import { describeApi } from "./describe-api.ts";
import type { DescriptionTask, DescriptionText } from "./describe-services.ts";
import { listDescribed } from "./paths.ts";

function* describe({
  files,
  serviceNames,
  examples,
  auth,
  profiles,
}: DescriptionTask): Generator<DescriptionText> {
  const file = files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
  const services = serviceNames.map((name) => {
    const service = registry.getService(name);
    if (service === undefined) throw new Error(`the descriptors have no service ${name}`);
    return service;
  });
  const { version } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8"));
  const document = describeApi({
    title: "Quantum-Safe Playground",
    version,
    services,
    routes: listDescribed(
      compileRoutes(
        services.map((service) => createServiceImplSpec(service, {})),
        profiles,
      ),
    ),
    comments: { ...googleComments, ...comments },
    examples,
    answers,
    auth,
    profiles,
  });
  const json = JSON.stringify(document);
  yield { format: "json", text: json };
  // Readers of YAML 1.1, such as PyYAML, convert timestamps without quotes. An anchor for every repeated object
  // is hard to read.
  const form = { schema: "yaml-1.1", aliasDuplicateObjects: false, lineWidth: 110 } as const;
  yield { format: "yaml", text: stringify(JSON.parse(json), form) };
}

for (const text of describe(workerData)) parentPort?.postMessage(text);
