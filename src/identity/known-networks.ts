/**
 * Remembers the networks from which users have logged in, in this server's memory, so a restart clears it.
 */
import { RecentMap } from "../calls/recent-map.ts";

export type KnownNetworks = ReturnType<typeof createKnownNetworks>;

/** Minimum number of networks to remember. */
const maxNetworks = 2 ** 16;

/** Remembers networks and evicts those that have not been used for a long time. */
export function createKnownNetworks() {
  const known = new RecentMap<true>({
    lifetimeMs: Number.POSITIVE_INFINITY,
    maxEntries: maxNetworks,
    nowMs: () => performance.now(),
  });
  const nameOf = (name: string, network: string): string => `${name} at ${network}`;
  /** Records that this user has logged in from this network. */
  const remember = (name: string, network: string): void => known.set(nameOf(name, network), true);
  return {
    /** Returns whether this user has logged in from this network. */
    has(name: string, network: string): boolean {
      const isKnown = known.get(nameOf(name, network)) !== undefined;
      if (isKnown) remember(name, network);
      return isKnown;
    },
    remember,
  };
}
