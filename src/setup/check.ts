/** Runs the steps of `npm run check`, up to the first that fails: `node src/setup/check.ts`. */
import { spawnSync } from "node:child_process";

const steps = [
  ["types", "tsc"],
  ["types of the console", "tsc -p console/page"],
  ["types of the console's step tests", "tsc -p console/test/steps"],
  ["style", "biome check"],
  ["protos", "buf lint"],
  ["generated code, imports and wording", "vitest run --project check"],
] as const;

for (const [name, command] of steps) {
  console.error(`check: ${name}`);
  const { status } = spawnSync(command, { shell: true, stdio: "inherit" });
  if (status === 0) continue;
  console.error(`check: "${name}" failed; later steps did not run. To repeat it: npx ${command}`);
  process.exitCode = 1;
  break;
}
