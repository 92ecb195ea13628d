import { type MasterKeySource, removeKeyRemains } from "../../secrets/master-key.ts";

/**
 * Removes temporary master key files left over from killed runs.
 *
 * @returns one sentence per removed file
 */
export function removeRemainsOfKey(masterKey: MasterKeySource): string[] {
  return removeKeyRemains(masterKey).map(describe);
}

/** Reports removed temporary files on standard error. */
export function tellOfRemains(paths: readonly string[]): void {
  for (const path of paths) process.stderr.write(`qsp: ${describe(path)}\n`);
}

function describe(path: string): string {
  return `removed ${path}, left over from a killed run`;
}
