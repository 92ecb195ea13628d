/** The web console's files: bundled from console/page, or read from the compiled program. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { deserialize, serialize } from "node:v8";
import type { BundledFile } from "../../console/bundler.ts";
import { type Content, prepareContent } from "../http/static-content.ts";
import { findProgramFile, isCompiled, packageFolder } from "../program-files.ts";

/** All files of the web pages. */
export interface Assets {
  /** Contents by name, such as "main-AB12CD34.js". Names contain a content hash, so a file never changes. */
  readonly files: ReadonlyMap<string, Content>;
  /** Files that each page loads first. */
  readonly console: PageFiles;
  readonly reference: PageFiles;
  readonly icon: string;
  /** The preview image for links to the console. */
  readonly share: string;
}

/** Names of the files that a page loads first. */
export interface PageFiles {
  readonly script: string;
  readonly style: string;
}

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

/** The file in the compiled program that holds the result of `packAssets`. */
export const assetsFile = "console/assets.bin";

/** Reads all files. Each story and each algorithm is a separate file that the browser fetches on demand. */
export async function readAssets(): Promise<Assets> {
  const files: Assets["files"] = isCompiled
    ? deserialize(await readFile(findProgramFile(assetsFile)))
    : await prepareFiles(await runBundler());
  const find = (start: string, extension: string): string => {
    const found = [...files.keys()].find((name) => name.startsWith(start) && name.endsWith(extension));
    if (found === undefined) throw new Error(`the bundle has no ${start}…${extension}`);
    return found;
  };
  const findPage = (entry: string) => ({ script: find(entry, ".js"), style: find(entry, ".css") });
  return {
    files,
    console: findPage("main-"),
    reference: findPage("reference-"),
    icon: find("icon-", ".svg"),
    share: find("share-", ".png"),
  };
}

/** Compresses the files and packs them for the compiled program. */
export async function packAssets(bundled: readonly BundledFile[]): Promise<Uint8Array> {
  return serialize(await prepareFiles(bundled));
}

async function prepareFiles(bundled: readonly BundledFile[]): Promise<Assets["files"]> {
  return new Map(
    await Promise.all(
      bundled.map(async ({ name, contents }) => {
        const type = types[extname(name)] ?? "application/octet-stream";
        return [name, await prepareContent(type, Buffer.from(contents, "base64"))] as const;
      }),
    ),
  );
}

async function runBundler(): Promise<BundledFile[]> {
  // Hide the server's settings from the bundler: some are secrets.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("QSP_")));
  const bundler = join(packageFolder, "console/bundler.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [bundler], {
    env,
    maxBuffer: 16 * 1024 * 1024,
  });
  return JSON.parse(stdout);
}
