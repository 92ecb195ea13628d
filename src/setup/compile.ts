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
  existsSync,
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
import { compiledFolder, compiledMain, identify, inputsPath, type Source } from "./freshness.mjs";

/**
 * Hours after which a build goes that no server runs from. A running server renews the time of its build's folder twice
 * an hour: see `describeStart`.
 */
const unusedHours = 2;

/** Files that the program reads beside its modules, as paths below src. */
const readFiles = globSync("openapi/reference/*", { cwd: join(packageFolder, "src") });

const started = performance.now();
const folder = join(compiledFolder, `.building-${process.pid}`);
makeFolder();
const sources = await compile().catch((error: unknown) => {
  rmSync(folder, { recursive: true });
  // esbuild has printed its errors.
  if (error instanceof Error && "errors" in error) process.exit(1);
  throw error;
});
const contents = Object.entries(sources).map(([path, { sha256 }]) => [path, sha256]);
const name = createHash("sha256").update(JSON.stringify(contents)).digest("hex").slice(0, 12);
publish(name);
removeOld(name);
console.error(`setup: compiled the program in ${((performance.now() - started) / 1000).toFixed(1)} s`);

function makeFolder(): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : error;
    console.error(
      `setup: the program must be compiled, and ${compiledFolder} cannot be written (${code}); ` +
        "run node src/setup.mjs as the user who owns it, or node src/main.ts instead of qsp",
    );
    process.exit(2);
  }
}

/** Writes the files of the program. @returns all files that it is made of, by their paths */
async function compile(): Promise<Readonly<Record<string, Source>>> {
  // Read first, so that a source that changes meanwhile makes the build stale.
  const files = globSync(["{src,gen}/**/*.*", "package.json", "package-lock.json"], { cwd: packageFolder })
    .map((path) => path.replaceAll("\\", "/"))
    .map((path): [string, Source] => [path, identify(path)]);
  const read = new Map(files);
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
  const own = [...new Set(used)].sort().flatMap((path) => {
    const source = read.get(path);
    return source === undefined ? [] : [[path, source] as const];
  });
  return Object.fromEntries(own);
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
  const place = join(compiledFolder, name);
  const isThere = (): boolean => existsSync(join(place, "main.js"));
  // A build without its main module is damaged.
  if (!isThere()) rmSync(place, { recursive: true, force: true });
  try {
    renameSync(folder, place);
  } catch (error) {
    // Another program was faster, and made the same.
    if (!isThere()) throw error;
    rmSync(folder, { recursive: true });
  }
  replace(compiledMain, describeStart(name));
  replace(inputsPath, JSON.stringify({ build: name, sources }, undefined, 1));
}

/**
 * The code that starts a build. V8's compiled code is kept with it, so that the next start need not compile. The time
 * of the folder tells others that the build is used.
 */
function describeStart(name: string): string {
  return `import { utimes } from "node:fs";
import module from "node:module";
import { join } from "node:path";
if (Number.parseInt(process.versions.node) < 26) {
  console.error("qsp: this is Node.js " + process.version + ", and the program needs 26: use node_modules/.bin/node");
  process.exit(2);
}
const build = join(import.meta.dirname, "${name}");
const use = () => utimes(build, new Date(), new Date(), () => {});
use();
setInterval(use, 30 * 60_000).unref();
module.enableCompileCache(join(build, "compiled"));
await import("./${name}/main.js");
`;
}

function replace(path: string, content: string): void {
  const next = `${path}.${process.pid}`;
  writeFileSync(next, content);
  renameSync(next, path);
}

function removeOld(current: string): void {
  for (const entry of readdirSync(compiledFolder, { withFileTypes: true })) {
    const path = join(compiledFolder, entry.name);
    const unusedMs = Date.now() - statSync(path).mtimeMs;
    if (!entry.isDirectory() || entry.name === current || unusedMs < unusedHours * 3_600_000) continue;
    rmSync(path, { recursive: true, force: true });
  }
}
