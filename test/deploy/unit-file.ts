/** Reads the files of deploy/ for tests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder with everything that operators install. */
export const deployFolder = join(import.meta.dirname, "../../deploy");

/** Reads a file by its path in deploy/. */
export function readDeployed(path: string): string {
  return readFileSync(join(deployFolder, path), "utf8");
}

/** Lists the values of a directive in a unit, in order. */
export function listValues(unit: string, directive: string): string[] {
  return [...unit.matchAll(new RegExp(`^${directive}=(.*)$`, "gm"))].map(([, value = ""]) => value);
}
