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
  // A ring: finding the oldest key of a Map takes longer for each key that was deleted before it.
  const ring: { readonly sequence: number; readonly entryHash: string }[] = [];
  return {
    add(sequence, entryHash) {
      ring[sequence % maxHashes] = { sequence, entryHash };
    },
    list(first, limit) {
      const found: string[] = [];
      for (let sequence = first; found.length < limit; sequence++) {
        const kept = ring[sequence % maxHashes];
        if (kept?.sequence !== sequence) break;
        found.push(kept.entryHash);
      }
      return found;
    },
  };
}
