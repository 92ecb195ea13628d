/** Builds the files of the page from src/console/page: bundled, split, minified and compressed, all in memory. */
import { execFile } from "node:child_process";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { type Content, prepareContent } from "../protocol/static-content.ts";
import type { BundledFile } from "./bundler.ts";

/** All files of the page. */
export interface Assets {
  /** By name, such as "main-AB12CD34.js". The name has a hash of the content, so the content never changes. */
  readonly files: ReadonlyMap<string, Content>;
  /** Names of the files that the page starts with. */
  readonly script: string;
  readonly style: string;
  readonly icon: string;
}

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Bundles the page. Each story and each algorithm is a file that the browser fetches on demand. */
export async function buildAssets(): Promise<Assets> {
  const files = new Map(
    await Promise.all(
      (await runBundler()).map(async ({ name, contents }) => {
        const type = types[extname(name)] ?? "application/octet-stream";
        return [name, await prepareContent(type, Buffer.from(contents, "base64"))] as const;
      }),
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
  // The bundler must not see the server's settings, because some are secrets.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("QSP_")));
  const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, "bundler.ts")], {
    env,
    maxBuffer: 16 * 1024 * 1024,
  });
  return JSON.parse(stdout);
}
