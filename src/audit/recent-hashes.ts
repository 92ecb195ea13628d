/** Hashes of entries that this program has just written, so that they need not be read and checked again. */

/** Maximum hashes to keep: a few seconds' worth. A hash takes about 100 bytes. */
const maxHashes = 16_384;

/** Hashes by entry sequence number. */
export interface RecentHashes {
  /** Adds the hash of an entry that is on disk. */
  add(sequence: number, entryHash: string): void;
  /** Lists hashes from a sequence number on, without gaps; none if the first one is not in memory. */
  list(first: number, limit: number): string[];
}

export function createRecentHashes(): RecentHashes {
  const hashes = new Map<number, string>();
  return {
    add(sequence, entryHash) {
      hashes.set(sequence, entryHash);
      if (hashes.size <= maxHashes) return;
      // A Map iterates in insertion order.
      const [oldest] = hashes.keys();
      if (oldest !== undefined) hashes.delete(oldest);
    },
    list(first, limit) {
      const found: string[] = [];
      for (let sequence = first; found.length < limit; sequence++) {
        const entryHash = hashes.get(sequence);
        if (entryHash === undefined) break;
        found.push(entryHash);
      }
      return found;
    },
  };
}
