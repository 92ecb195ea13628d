/** The keys of a server: one cache and one schedule, for all services that use them. */

import type { UserStore } from "../../identity/users.ts";
import type { ServiceDeps } from "../service-deps.ts";
import type { ChangeDeps } from "./change.ts";
import { createKeyCache } from "./key-cache.ts";
import { startSchedule } from "./schedule.ts";
import { createKmsStore } from "./store.ts";

/** The dependencies of the keys. */
export interface KeyDomainDeps extends ServiceDeps {
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
}

/** The keys of a server. */
export type KeyDomain = ReturnType<typeof createKeyDomain>;

/** Creates the keys of a server, which no service may ever open. */
export function createKeyDomain({ store, provider, users, now }: KeyDomainDeps) {
  let opened: { readonly deps: ChangeDeps; readonly stopSchedule: () => Promise<void> } | undefined;
  const start = () => {
    const keys = createKmsStore(store, now);
    const deps = { store, provider, users, now, keys, cache: createKeyCache({ provider, keys }) };
    return { deps, stopSchedule: startSchedule(deps) };
  };
  return {
    /** Opens the keys for a service. The first one starts the schedule. */
    open(): ChangeDeps {
      opened ??= start();
      return opened.deps;
    },
    /** Call it when the services have ended. */
    async close(): Promise<void> {
      await opened?.stopSchedule();
      await opened?.deps.cache.close();
    },
  };
}
