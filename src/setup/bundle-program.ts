/** Bundles the program: its modules and the prebuilt console pages. */
import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { build } from "esbuild";
import { bundlePage } from "../../console/bundler.ts";
import { assetsFile, packAssets } from "../console-pages/assets.ts";
import { helpFile, packageFolder } from "../program-files.ts";

const grpcExporter = "@opentelemetry/exporter-trace-otlp-grpc";

/**
 * Writes the program to a folder; its entry point is main.js.
 *
 * @returns the source files, as paths relative to the folder of package.json; some are in node_modules
 * @throws esbuild's BuildFailure, after it has printed the errors
 */
export async function bundleProgram(folder: string): Promise<string[]> {
  const [{ metafile }, page] = await Promise.all([bundleModules(folder), bundlePage()]);
  const assets = join(folder, assetsFile);
  mkdirSync(dirname(assets), { recursive: true });
  writeFileSync(assets, await packAssets(page.files));
  writeHelp(folder);
  return [...Object.keys(metafile.inputs), ...page.inputs];
}

function bundleModules(folder: string) {
  const threads = globSync("src/**/*-thread.ts", { cwd: packageFolder });
  return build({
    absWorkingDir: packageFolder,
    entryPoints: Object.fromEntries(["src/main.ts", ...threads].map((path) => [basename(path, ".ts"), path])),
    outdir: folder,
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node26",
    sourcemap: "linked",
    sourcesContent: false,
    metafile: true,
    define: { QSP_COMMIT: JSON.stringify(findCommit()) },
    // The package's ES modules load grpc-js through a require that esbuild cannot resolve, which would load a second
    // copy.
    alias: { [grpcExporter]: createRequire(import.meta.url).resolve(grpcExporter) },
    // An optional dependency of its package, not installed.
    external: ["pg-native"],
    // Bundled CommonJS packages call require.
    banner: {
      js: 'import { createRequire as createRequireOf } from "node:module"; const require = createRequireOf(import.meta.url);',
    },
    logLevel: "error",
  });
}

/** Finds the commit of the sources: from the clone, or from QSP_COMMIT outside a clone, such as in an image. */
function findCommit(): string {
  // Without its own .git, the folder may be inside another project's clone.
  if (!existsSync(join(packageFolder, ".git"))) return process.env.QSP_COMMIT ?? "";
  try {
    const args = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"];
    return execFileSync("git", args, {
      cwd: packageFolder,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "";
  }
}

/** Writes the list of verbs, so that `qsp help` need not load the modules of all verbs. */
function writeHelp(folder: string): void {
  const path = join(folder, helpFile);
  const help = execFileSync(process.execPath, [join(folder, "main.js"), "help"]);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, help);
}
