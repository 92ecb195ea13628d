/** The group of the socket. */
import { readFileSync } from "node:fs";
import { usageError } from "../../src/cli/exit-codes.ts";

/** Finds the ID of a group in /etc/group; a number is an ID itself. @throws CliError */
export function findGroupId(nameOrId: string): number {
  if (/^\d{1,9}$/.test(nameOrId)) return Number(nameOrId);
  for (const line of readFileSync("/etc/group", "utf8").split("\n")) {
    const [name, , id = ""] = line.split(":");
    if (name === nameOrId && /^\d+$/.test(id)) return Number(id);
  }
  throw usageError(`--group "${nameOrId}" is not a group in /etc/group; name one, or give its number`);
}
