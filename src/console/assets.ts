/** Makes the files of the page out of src/console/page: bundled, split, minified and compressed, all in memory. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { BundledFile } from "./bundler.ts";

/** One file that a browser can ask for; it never changes, because its name has a hash of what is in it. */
export interface Asset {
  readonly type: string;
  readonly identity: Uint8Array;
  readonly br: Uint8Array;
  readonly gzip: Uint8Array;
}

/** All files of the page. */
export interface Assets {
  /** By name: "main-AB12CD34.js". */
  readonly files: ReadonlyMap<string, Asset>;
  /** Names of those that the page begins with. */
  readonly script: string;
  readonly style: string;
  readonly icon: string;
}

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Bundles the page. Each story, and each algorithm, is a file that a browser fetches when it needs it. */
export async function buildAssets(): Promise<Assets> {
  const files = new Map(
    await Promise.all(
      (await runBundler()).map(async (file) => [file.name, await compressFile(file)] as const),
    ),
  );
  const find = (start: string, extension: string): string => {
    const found = [...files.keys()].find((name) => name.startsWith(start) && name.endsWith(extension));
    if (found === undefined) throw new Error(`the bundle has no ${start}…${extension}`);
    return found;
  };
  return { files, script: find("main-", ".js"), style: find("main-", ".css"), icon: find("icon-", ".svg") };
}

async function runBundler(): Promise<BundledFile[]> {
  // The server's settings, and the secrets among them, are none of a bundler's business.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("QSP_")));
  const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, "bundler.ts")], {
    env,
    maxBuffer: 16 * 1024 * 1024,
  });
  return JSON.parse(stdout);
}

async function compressFile({ name, contents: base64 }: BundledFile): Promise<Asset> {
  const contents = Buffer.from(base64, "base64");
  const [br, gzipped] = await Promise.all([
    // Quality 9 is within a twentieth of the best, in a tenth of its time.
    promisify(brotliCompress)(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
    promisify(gzip)(contents, { level: 9 }),
  ]);
  return { type: types[extname(name)] ?? "application/octet-stream", identity: contents, br, gzip: gzipped };
}

/** A name for a text: the same for the same text. */
export function tagOf(text: string): string {
  return `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`;
}
