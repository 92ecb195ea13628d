/** The sources and descriptors from which a client generates its stubs. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { create, createRegistry, type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { packageFolder } from "../program-files.ts";
import { describeFile } from "../transcoding/descriptors.ts";
import { printProto } from "./print-proto.ts";

/** A file and its path in an archive or folder. */
export interface SourceFile {
  /** Import path, with slashes: "kms/key.proto". */
  readonly path: string;
  readonly content: Uint8Array;
}

/** Our own protos. Third-party protos come from dev dependencies. */
const ownProtos = join(packageFolder, "proto");

/**
 * Lists the source of each file, sorted by path. Our own files are the originals; third-party files are
 * printed from their descriptors, without comments.
 */
export async function listSources(files: readonly DescFile[]): Promise<SourceFile[]> {
  const registry = createRegistry(...files);
  const sources: SourceFile[] = [];
  for (const file of files) {
    const path = file.proto.name;
    const own = join(ownProtos, path);
    const isOwn = existsSync(own);
    const content = isOwn ? await readFile(own) : Buffer.from(printProto(describeFile(file), registry));
    sources.push({ path, content });
    // Printing all files takes 100 ms. Let calls continue in between.
    await setImmediate();
  }
  return sources.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Serialises files as one FileDescriptorSet. Pass imports before the files that import them. */
export function serializeDescriptors(files: readonly DescFile[]): Uint8Array {
  return toBinary(
    FileDescriptorSetSchema,
    create(FileDescriptorSetSchema, { file: files.map(describeFile) }),
  );
}
