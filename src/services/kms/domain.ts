/** A server's keys: one cache and one schedule, shared by all services that use keys. */

import type { UserStore } from "../../identity/users.ts";
import type { ServiceDeps } from "../service-deps.ts";
import type { ChangeDeps } from "./change.ts";
import { createKeyCache } from "./key-cache.ts";
import { startSchedule } from "./schedule.ts";
import { createKmsStore } from "./store.ts";

export interface KeyDomainDeps extends ServiceDeps {
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
}

export type KeyDomain = ReturnType<typeof createKeyDomain>;

/** Creates the key domain. Nothing runs until a service opens it. */
export function createKeyDomain({ store, provider, users, now }: KeyDomainDeps) {
  let opened: { readonly deps: ChangeDeps; readonly stopSchedule: () => Promise<void> } | undefined;
  const start = () => {
    const keys = createKmsStore(store, now);
    const deps = { store, provider, users, now, keys, cache: createKeyCache({ provider, keys }) };
    return { deps, stopSchedule: startSchedule(deps) };
  };
  return {
    /** Opens the keys for a service. The first caller starts the schedule. */
    open(): ChangeDeps {
      opened ??= start();
      return opened.deps;
    },
    /** Call this after the services have closed. */
    async close(): Promise<void> {
      await opened?.stopSchedule();
      await opened?.deps.cache.close();
    },
  };
}
