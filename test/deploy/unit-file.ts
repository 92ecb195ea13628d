/** The files of deploy/, as tests read them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder of what operators install. */
export const deployFolder = join(import.meta.dirname, "../../deploy");

/** Reads a file of deploy/ by its path in it. */
export function readDeployed(path: string): string {
  return readFileSync(join(deployFolder, path), "utf8");
}

/** Lists the values of a directive of a unit, in their order. */
export function listValues(unit: string, directive: string): string[] {
  return [...unit.matchAll(new RegExp(`^${directive}=(.*)$`, "gm"))].map(([, value = ""]) => value);
}
