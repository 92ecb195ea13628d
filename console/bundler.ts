/**
 * Bundles the page in memory: split and minified. Run as a program, it prints the files as JSON. A server
 * that runs from its sources starts it as a separate program, because esbuild's process lives until its
 * parent ends.
 */
import { basename, join } from "node:path";
import { build } from "esbuild";
import { packageFolder } from "../src/program-files.ts";

/** One file of the bundle. */
export interface BundledFile {
  readonly name: string;
  /** Content in base64. */
  readonly contents: string;
}

const pageDir = join(import.meta.dirname, "page");

/**
 * Bundles the console and the reference.
 *
 * @returns the files, and the source paths relative to package.json's folder
 */
export async function bundlePage(): Promise<{ files: BundledFile[]; inputs: string[] }> {
  const { outputFiles, metafile } = await build({
    entryPoints: {
      main: join(pageDir, "main.tsx"),
      reference: join(pageDir, "reference/main.tsx"),
      icon: join(pageDir, "icon.svg"),
      share: join(pageDir, "share.png"),
    },
    // Nothing is written; names are relative to this directory.
    outdir: "/",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    absWorkingDir: packageFolder,
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".svg": "copy", ".png": "copy" },
    // The folder's tsconfig is only for the type checker; its module settings do not apply here.
    tsconfigRaw: {},
    logLevel: "silent",
  });
  const files = outputFiles.map(({ path, contents }) => ({
    name: basename(path),
    contents: contents.toBase64(),
  }));
  return { files, inputs: Object.keys(metafile.inputs) };
}

if (import.meta.main) process.stdout.write(JSON.stringify((await bundlePage()).files));
