/** Bundles the program: its modules, and the pages of the console ready made. */
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
 * Writes the program into a folder, which starts with main.js.
 *
 * @returns the files that it is made of, as paths below the folder of package.json; some are in node_modules
 * @throws esbuild's BuildFailure, after it has printed the mistakes
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
    // Its modules for import call a function that esbuild does not know as require, and would load a second grpc-js.
    alias: { [grpcExporter]: createRequire(import.meta.url).resolve(grpcExporter) },
    // Optional in its package, and not installed.
    external: ["pg-native"],
    // Packages in CommonJS call require.
    banner: {
      js: 'import { createRequire as createRequireOf } from "node:module"; const require = createRequireOf(import.meta.url);',
    },
    logLevel: "error",
  });
}

/** Finds the commit of the sources: that of the clone, or what QSP_COMMIT says where there is none, as in an image. */
function findCommit(): string {
  // A folder without .git may be within the clone of another project.
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

/** Writes the list of verbs, for which the program would otherwise load the modules of all of them at each `qsp help`. */
function writeHelp(folder: string): void {
  const path = join(folder, helpFile);
  const help = execFileSync(process.execPath, [join(folder, "main.js"), "help"]);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, help);
}
