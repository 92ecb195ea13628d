/** Keeps a forgotten flag from opening a store to everybody. */
import { type Config, ConfigError } from "./config.ts";
import { listLostAccounts } from "./identity/lost-accounts.ts";
import { hasAccounts } from "./identity/users.ts";
import type { Store } from "./store/store.ts";

/**
 * Requires an explicit --auth if the store has users or clients: with the default, anyone could use all of
 * their keys. Accounts that were deleted in the database count too: the identity log still has them.
 *
 * @throws ConfigError
 */
export async function requireAuthChosen(store: Store, { isAuthChosen }: Config): Promise<void> {
  if (isAuthChosen) return;
  if (await hasAccounts(store)) throw authMissing("the store has users or clients");
  const [lost] = await listLostAccounts(store.reader);
  if (lost !== undefined)
    throw authMissing(`the ${lost} is missing, but the identity log records no removal`);
}

function authMissing(cause: string): ConfigError {
  return new ConfigError(
    `${cause}, and without --auth anyone who reaches the port could use their keys; ` +
      "start with --auth token, or with --auth open to allow that",
  );
}
