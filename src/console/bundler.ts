/**
 * Bundles the page and prints it as JSON. It is a separate program, because esbuild's process runs until its parent
 * ends, and a server runs for long.
 */
import { basename, join } from "node:path";
import { build } from "esbuild";

/** One file of the bundle. */
export interface BundledFile {
  readonly name: string;
  /** Its bytes as base64. */
  readonly contents: string;
}

const pageDir = join(import.meta.dirname, "page");

async function bundle(): Promise<BundledFile[]> {
  const { outputFiles } = await build({
    entryPoints: { main: join(pageDir, "main.tsx"), icon: join(pageDir, "icon.svg") },
    // Nothing is written; names are relative to this directory.
    outdir: "/",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    absWorkingDir: join(import.meta.dirname, "../.."),
    bundle: true,
    splitting: true,
    write: false,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".svg": "copy" },
    // The folder's tsconfig is for the type checker; its module settings do not apply here.
    tsconfigRaw: {},
    logLevel: "silent",
  });
  return outputFiles.map(({ path, contents }) => ({ name: basename(path), contents: contents.toBase64() }));
}

process.stdout.write(JSON.stringify(await bundle()));
