import { type MasterKeySource, removeKeyRemains } from "../../secrets/master-key.ts";

/** Removes temporary files of a master key that killed runs have left. @returns a sentence for each */
export function removeRemainsOfKey(masterKey: MasterKeySource): string[] {
  return removeKeyRemains(masterKey).map(describe);
}

/** Prints which temporary files of killed runs were removed. */
export function tellOfRemains(paths: readonly string[]): void {
  for (const path of paths) process.stderr.write(`qsp: ${describe(path)}\n`);
}

function describe(path: string): string {
  return `removed ${path}, which a killed run had left`;
}
