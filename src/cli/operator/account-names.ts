/** Validates user and client names and roles. */
import { ConfigError } from "../../config.ts";
import { isAccountName } from "../../identity/account-name.ts";
import { userRoles } from "../../identity/tables.ts";
import type { UserRole } from "../../identity/users.ts";
import { systemPrincipal } from "../../records/ownership.ts";

/** Actors in records and logs that have no account: open mode, scheduled work, and operators. */
const reservedNames: readonly string[] = [systemPrincipal.user, "schedule", "operator"];

/** @throws ConfigError for an invalid or reserved name */
export function requireAccountName(name: string): void {
  if (!isAccountName(name))
    throw new ConfigError(
      `"${name}" is not a valid name: use 1 to 128 letters, digits and . _ @ + -, starting with a letter or digit`,
    );
  if (reservedNames.includes(name))
    throw new ConfigError(`"${name}" is reserved for the system; choose another name`);
}

/** @throws ConfigError for an unknown role */
export function readRole(text: string): UserRole {
  const role = userRoles.find((known) => known === text);
  if (role !== undefined) return role;
  throw new ConfigError(`"${text}" is not a role; use one of ${userRoles.join(", ")}`);
}
