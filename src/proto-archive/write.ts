/**
 * Writes the protos that a server serves into a folder: `npm run protos -- <folder>`.
 *
 * Needs no running server and no test tools.
 */
import { globSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { DescFile } from "@bufbuild/protobuf";
import { collectFiles, errorFiles } from "../transcoding/descriptors.ts";
import { listSources } from "./sources.ts";

/** An extension serves these on its own socket, and no server does. */
const pluginFiles = "kubernetes/**";

const generated = join(import.meta.dirname, "../../gen");

/** Finds the files that declare services, and all other files that a client needs. */
export async function findFiles(): Promise<DescFile[]> {
  const modules = await Promise.all(
    globSync("**/*_pb.ts", { cwd: generated, exclude: [pluginFiles] })
      .sort()
      .map((path) => import(pathToFileURL(join(generated, path)).href)),
  );
  const files = modules.flatMap((module) => Object.values(module).filter(isFile));
  return collectFiles([...files.filter(({ services }) => services.length > 0), ...errorFiles]);
}

function isFile(value: unknown): value is DescFile {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "file";
}

async function main([folder, ...rest]: readonly string[]): Promise<void> {
  if (folder === undefined || folder.startsWith("-") || rest.length > 0) {
    process.stderr.write("protos: name one folder to write to: npm run protos -- <folder>\n");
    process.exitCode = 2;
    return;
  }
  // npm runs scripts in the folder of package.json, but the path is relative to the caller's folder.
  const { npm_lifecycle_event: script, INIT_CWD: callerFolder = "." } = process.env;
  const target = resolve(script === "protos" ? callerFolder : ".", folder);
  const sources = await listSources(await findFiles());
  for (const { path, content } of sources) {
    await mkdir(dirname(join(target, path)), { recursive: true });
    await writeFile(join(target, path), content);
  }
  process.stderr.write(`protos: wrote ${sources.length} files to ${target}\n`);
}

if (import.meta.main) await main(process.argv.slice(2));
