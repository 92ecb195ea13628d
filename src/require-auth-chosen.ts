/** Keeps a forgotten flag from opening a store to everybody. */
import { type Config, ConfigError } from "./config.ts";
import { hasAccounts } from "./identity/users.ts";
import type { Store } from "./store/store.ts";

/**
 * Requires an explicit --auth if the store has users or clients: with the default, anyone could use all of
 * their keys.
 *
 * @throws ConfigError
 */
export async function requireAuthChosen(store: Store, { isAuthChosen }: Config): Promise<void> {
  if (isAuthChosen || !(await hasAccounts(store))) return;
  throw new ConfigError(
    "the store has users or clients, and without --auth anyone who reaches the port could use their keys; " +
      "start with --auth token, or with --auth open to allow that",
  );
}
