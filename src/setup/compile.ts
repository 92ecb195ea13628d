/**
 * Compiles the program into dist: `node src/setup/compile.ts`. The compiled program starts in a third of the time and
 * carries the page ready made. setup.mjs runs this when a source has changed.
 *
 * Each build has a folder of its own, which dist/main.js refers to, because a server may run from an earlier one and
 * loads the modules of rarely used calls when they are needed.
 */
import { createHash } from "node:crypto";
import {
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { build } from "esbuild";
import { assetsFile, packAssets } from "../console/assets.ts";
import { bundlePage } from "../console/bundler.ts";
import { packageFolder } from "../program-files.ts";
import { compiledFolder, compiledMain, inputsPath, stampOf } from "./freshness.mjs";

/** Earlier builds that stay, for servers that run from them. */
const keptBuilds = 3;

/** Files that the program reads beside its modules, as paths below src. */
const readFiles = globSync("openapi/reference/*", { cwd: join(packageFolder, "src") });

const started = performance.now();
const folder = join(compiledFolder, `.building-${process.pid}`);
const inputs = await compile();
// Begun before the stamps: a source that changes meanwhile makes the build stale.
const name = createHash("sha256").update(JSON.stringify(inputs)).digest("hex").slice(0, 12);
publish(name);
removeOld(name);
console.error(`setup: compiled the program in ${((performance.now() - started) / 1000).toFixed(1)} s`);

/** Writes the files of the program. @returns the stamps of all files that it is made of */
async function compile(): Promise<Readonly<Record<string, string>>> {
  const sources = globSync(["{src,gen,proto}/**/*", "package.json", "package-lock.json"], {
    cwd: packageFolder,
  });
  const stamps = new Map(sources.map((path) => [path.replaceAll("\\", "/"), stampOf(path)]));
  const [{ metafile }, page] = await Promise.all([bundleProgram(), bundlePage()]);
  writeFile(assetsFile, await packAssets(page.files));
  for (const path of readFiles) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(packageFolder, "src", path), join(folder, path));
  }
  const used = [
    ...Object.keys(metafile.inputs),
    ...page.inputs,
    ...readFiles.map((path) => `src/${path}`),
    ...["package.json", "package-lock.json", "src/setup/compile.ts"],
  ];
  // Packages are those of package-lock.json.
  const own = [...new Set(used)].filter((path) => stamps.has(path)).sort();
  return Object.fromEntries(own.map((path) => [path, stamps.get(path) ?? ""]));
}

function bundleProgram() {
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
    // Optional in its package, and not installed.
    external: ["pg-native"],
    // Packages in CommonJS call require.
    banner: {
      js: 'import { createRequire as createRequireOf } from "node:module"; const require = createRequireOf(import.meta.url);',
    },
    logLevel: "error",
  });
}

function writeFile(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

/** Puts the build in its place. Two programs may compile at one moment, and one may start while another compiles. */
function publish(name: string): void {
  try {
    renameSync(folder, join(compiledFolder, name));
  } catch {
    // Another program was faster, and made the same.
    rmSync(folder, { recursive: true });
  }
  replace(compiledMain, describeStart(name));
  replace(inputsPath, JSON.stringify(inputs, undefined, 1));
}

/** The code that starts a build. V8's compiled code is kept with it, so that the next start need not compile. */
function describeStart(name: string): string {
  return `import module from "node:module";
import { join } from "node:path";
module.enableCompileCache(join(import.meta.dirname, "${name}/compiled"));
await import("./${name}/main.js");
`;
}

function replace(path: string, content: string): void {
  const next = `${path}.${process.pid}`;
  writeFileSync(next, content);
  renameSync(next, path);
}

function removeOld(current: string): void {
  const builds = readdirSync(compiledFolder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && /^[0-9a-f]{12}$/.test(entry.name) && entry.name !== current)
    .map((entry) => join(compiledFolder, entry.name))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const old of builds.slice(keptBuilds)) rmSync(old, { recursive: true, force: true });
}
