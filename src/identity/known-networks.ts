/** Remembers the networks from which users logged in, in the memory of this server, so a restart clears it. */
import type { RecentNames } from "../shared-memory/recent-names.ts";
import { monotonicMs } from "../shared-memory/shared-memory.ts";

/** The networks of users. */
export interface KnownNetworks {
  /** Tells whether a user of this name has logged in from this network. */
  has(name: string, network: string): boolean;
  /** Notes that a user of this name has logged in from this network. */
  remember(name: string, network: string): void;
}

/** Remembers networks in a table, where the least recently used ones make room for others. */
export function createKnownNetworks(table: RecentNames): KnownNetworks {
  const nameOf = (name: string, network: string): string => `${name} at ${network}`;
  return {
    has: (name, network) =>
      table.update(nameOf(name, network), (known) => {
        if (known.atMs === 0) return false;
        known.atMs = monotonicMs();
        return true;
      }),
    remember: (name, network) =>
      table.update(nameOf(name, network), (known) => {
        known.atMs = monotonicMs();
      }),
  };
}
