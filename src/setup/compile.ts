/**
 * Compiles the program into dist: `node src/setup/compile.ts`. The compiled program starts in a third of the time and
 * contains the prebuilt console pages. setup.mjs runs this when a source has changed.
 *
 * Each build has its own folder, to which dist/main.js refers: a running server may use an earlier build and loads
 * the modules of rarely used calls on demand.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimes,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { packageFolder } from "../program-files.ts";
import { bundleProgram } from "./bundle-program.ts";
import { compiledFolder, compiledMain, identify, inputsPath, readInputs, type Source } from "./freshness.mjs";

/**
 * Hours after which an unused build is deleted. A running server touches the folder of its build twice an hour: see
 * `describeStart`. A server of another user cannot, so a replaced build counts as used until it is replaced.
 */
const unusedHours = 2;

const started = performance.now();
const folder = join(compiledFolder, `.building-${process.pid}`);
makeFolder();
const sources = await compile().catch((error: unknown) => {
  rmSync(folder, { recursive: true });
  // esbuild has already printed its errors.
  if (error instanceof Error && "errors" in error) process.exit(1);
  throw error;
});
const contents = Object.entries(sources).map(([path, { sha256 }]) => [path, sha256]);
const name = createHash("sha256").update(JSON.stringify(contents)).digest("hex").slice(0, 12);
const replaced = readInputs()?.build;
publish(name);
removeOld(name, replaced);
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

/**
 * Writes the program's files.
 *
 * @returns its source files, by path
 */
async function compile(): Promise<Readonly<Record<string, Source>>> {
  // Read first, so that a source that changes during the build makes the build stale.
  const files = globSync(
    ["{src,console,extensions,gen}/**/*.*", "docs/*.json", "package.json", "package-lock.json"],
    {
      cwd: packageFolder,
      // Extension tests include clients with their own packages.
      exclude: ["**/node_modules"],
    },
  )
    .map((path) => path.replaceAll("\\", "/"))
    .map((path): [string, Source] => [path, identify(path)]);
  const read = new Map(files);
  const used = [
    ...(await bundleProgram(folder)),
    ...["package.json", "package-lock.json", "src/setup/compile.ts", "src/setup/bundle-program.ts"],
  ];
  // Packages are pinned by package-lock.json.
  const own = [...new Set(used)].sort().flatMap((path) => {
    const source = read.get(path);
    return source === undefined ? [] : [[path, source] as const];
  });
  return Object.fromEntries(own);
}

/**
 * Moves the build into place. Two programs may compile at the same time, and one may start while another compiles.
 */
function publish(name: string): void {
  const place = join(compiledFolder, name);
  const isThere = (): boolean => existsSync(join(place, "main.js"));
  // A build without its main module is damaged.
  if (!isThere()) rmSync(place, { recursive: true, force: true });
  try {
    renameSync(folder, place);
  } catch (error) {
    // Another program published the same build first.
    if (!isThere()) throw error;
    rmSync(folder, { recursive: true });
  }
  replace(compiledMain, describeStart(name));
  replace(inputsPath, JSON.stringify({ build: name, sources }, undefined, 1));
}

/**
 * Generates the code that starts a build. V8's compiled code is cached in the build, so that the next start skips
 * compilation. Touching the folder shows other programs that the build is in use.
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
module.setSourceMapsSupport(true, { nodeModules: true });
await import("./${name}/main.js");
`;
}

function replace(path: string, content: string): void {
  const next = `${path}.${process.pid}`;
  writeFileSync(next, content);
  renameSync(next, path);
}

function removeOld(current: string, replaced: string | undefined): void {
  for (const entry of readdirSync(compiledFolder, { withFileTypes: true })) {
    const path = join(compiledFolder, entry.name);
    const unusedMs = Date.now() - statSync(path).mtimeMs;
    // Fails if the build belongs to another user, who then touches it.
    if (entry.name === replaced) utimes(path, new Date(), new Date(), () => {});
    else if (entry.isDirectory() && entry.name !== current && unusedMs >= unusedHours * 3_600_000)
      rmSync(path, { recursive: true, force: true });
  }
}
