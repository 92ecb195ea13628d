/** The keys of a server: one cache and one schedule for all services that use them. */
import type { Store } from "../../store/store.ts";
import type { ModuleDeps } from "../service-module.ts";
import type { ChangeDeps } from "./change.ts";
import { createKeyCache } from "./key-cache.ts";
import { startSchedule } from "./schedule.ts";
import { createKmsStore } from "./store.ts";

/** The keys as services use them, until they close it. */
export interface KeyDomain {
  readonly deps: ChangeDeps;
  close(): Promise<void>;
}

interface Opened {
  readonly deps: ChangeDeps;
  readonly stop: () => Promise<void>;
  services: number;
}

/** By store, because each server has its own. */
const opened = new WeakMap<Store, Opened>();

/** Opens the keys of a store, or shares what another service of the server has opened. */
export function openKeyDomain({ store, provider, users, now }: ModuleDeps): KeyDomain {
  const known = opened.get(store) ?? open({ store, provider, users, now });
  opened.set(store, known);
  known.services += 1;
  let isClosed = false;
  return {
    deps: known.deps,
    async close() {
      if (isClosed) return;
      isClosed = true;
      known.services -= 1;
      if (known.services > 0) return;
      opened.delete(store);
      await known.stop();
    },
  };
}

function open({
  store,
  provider,
  users,
  now,
}: Pick<ChangeDeps, "store" | "provider" | "users" | "now">): Opened {
  const keys = createKmsStore(store, now);
  const cache = createKeyCache({ provider, keys });
  const deps: ChangeDeps = { store, provider, users, now, keys, cache };
  const stopSchedule = startSchedule(deps);
  const stop = async (): Promise<void> => {
    await stopSchedule();
    await cache.close();
  };
  return { deps, stop, services: 0 };
}
