/**
 * Writes lib, which `npm pack` includes in the package: the compiled program, and the client with its types: `node
 * src/setup/pack.ts`.
 *
 * A clone never runs from lib; it compiles into dist when a source has changed.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageFolder } from "../program-files.ts";
import { bundleProgram } from "./bundle-program.ts";

const folder = join(packageFolder, "lib");
const { version } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8"));

rmSync(folder, { recursive: true, force: true });
mkdirSync(join(folder, "program"), { recursive: true });
await bundleProgram(join(folder, "program"));
writeFileSync(join(folder, "start.js"), describeStart());
execFileSync(
  process.execPath,
  [join(packageFolder, "node_modules/typescript/bin/tsc"), "-p", "src/client", "--outDir", folder],
  { cwd: packageFolder, stdio: ["ignore", 2, 2] },
);

/**
 * Generates the code that starts the program. V8's compiled code is cached in the user's own cache folder: the
 * package may belong to another user, and anyone who can write to a shared cache could choose what runs.
 */
function describeStart(): string {
  return `import module from "node:module";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
try {
  const given = process.env.XDG_CACHE_HOME ?? "";
  const cache = isAbsolute(given) ? given : join(homedir(), ".cache");
  module.enableCompileCache(join(cache, "quantum-safe-playground", "${version}"));
} catch {
  // A user without a home folder compiles at each start.
}
module.setSourceMapsSupport(true, { nodeModules: true });
await import("./program/main.js");
`;
}
