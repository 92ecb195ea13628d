/** Remembers the networks from which users logged in, in the memory of this server, so a restart clears it. */
import { LRUCache } from "lru-cache";

/** The networks of users. */
export interface KnownNetworks {
  /** Tells whether a user of this name has logged in from this network. */
  has(name: string, network: string): boolean;
  /** Notes that a user of this name has logged in from this network. */
  remember(name: string, network: string): void;
}

/** The most users, and networks of each, to remember. Beyond it the least recently used one is forgotten. */
const maxUsers = 10_000;
const maxNetworks = 20;

/** Creates an empty memory. */
export function createKnownNetworks(): KnownNetworks {
  const users = new LRUCache<string, LRUCache<string, true>>({ max: maxUsers });
  return {
    has: (name, network) => users.get(name)?.has(network) ?? false,
    remember(name, network) {
      const networks = users.get(name) ?? new LRUCache<string, true>({ max: maxNetworks });
      users.set(name, networks);
      networks.set(network, true);
    },
  };
}
