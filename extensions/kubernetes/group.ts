/** The socket's group. */
import { readFileSync } from "node:fs";
import { usageError } from "../../src/cli/exit-codes.ts";

/**
 * Finds a group ID in /etc/group. A number is used as the ID.
 *
 * @throws CliError
 */
export function findGroupId(nameOrId: string): number {
  if (/^\d{1,9}$/.test(nameOrId)) return Number(nameOrId);
  for (const line of readFileSync("/etc/group", "utf8").split("\n")) {
    const [name, , id = ""] = line.split(":");
    if (name === nameOrId && /^\d+$/.test(id)) return Number(id);
  }
  throw usageError(`--group "${nameOrId}" is not a group in /etc/group; use an existing group or a group ID`);
}
