/** The hashes of entries that this program has just written, so that they need not be read and checked again. */

/** Hashes to keep: those of some seconds. A hash takes about 100 bytes. */
const maxHashes = 16_384;

/** Hashes by the sequence numbers of their entries. */
export interface RecentHashes {
  /** Adds the hash of an entry that is on the disk. */
  add(sequence: number, entryHash: string): void;
  /** Lists hashes from a sequence number on, without a gap; none if the first is not here. */
  list(first: number, limit: number): string[];
}

/** Starts without hashes. */
export function createRecentHashes(): RecentHashes {
  const hashes = new Map<number, string>();
  return {
    add(sequence, entryHash) {
      hashes.set(sequence, entryHash);
      if (hashes.size <= maxHashes) return;
      // A map has its keys in the order in which they were added.
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
