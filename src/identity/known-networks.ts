/** Remembers the networks from which users logged in, in the memory of this server, so a restart clears it. */
import { RecentMap } from "../calls/recent-map.ts";

/** The networks of users. */
export type KnownNetworks = ReturnType<typeof createKnownNetworks>;

/** Networks of users to remember at least. */
const maxNetworks = 2 ** 16;

/** Remembers networks; those that were not used for long make room for others. */
export function createKnownNetworks() {
  const known = new RecentMap<true>({
    lifetimeMs: Number.POSITIVE_INFINITY,
    maxEntries: maxNetworks,
    nowMs: () => performance.now(),
  });
  const nameOf = (name: string, network: string): string => `${name} at ${network}`;
  /** Notes that a user of this name has logged in from this network. */
  const remember = (name: string, network: string): void => known.set(nameOf(name, network), true);
  return {
    /** Tells whether a user of this name has logged in from this network. */
    has(name: string, network: string): boolean {
      const isKnown = known.get(nameOf(name, network)) !== undefined;
      if (isKnown) remember(name, network);
      return isKnown;
    },
    remember,
  };
}
