/** Verifies a log's stored hashes and checkpoints against its records. */
import { setImmediate } from "node:timers/promises";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { RecordDamagedError, readMessage, StoreFailureError } from "../../src/database/store-error.ts";
import { combine, hashPerfect } from "../../src/merkle/hashes.ts";
import { createLeafHasher, type LeafTiles, splitHashes } from "../../src/merkle/leaf-tiles.ts";
import { countHashes, tileWidth } from "../../src/merkle/tiles.ts";
import type { Store } from "../../src/store/store.ts";
import { createCheckpointStore, type PublishedCheckpoint } from "./checkpoint-store.ts";
import { createHashStore, describeHash } from "./hash-store.ts";
import type { LeafSource } from "./source.ts";
import type { VerifierKey } from "./verifier-keys.ts";
import { verifyNote } from "./verify-note.ts";

export interface TreeVerification {
  readonly log: string;
  /** Number of stored hashes and checkpoints that match the records. */
  readonly hashes: number;
  readonly checkpoints: number;
  readonly fault: TreeFault | undefined;
  /** Root of the full leaf tiles, to continue from. */
  readonly tilesRoot: Uint8Array;
}

/** The first mismatch. */
export interface TreeFault {
  /** Index of the first leaf that it covers. */
  readonly leaf: number;
  /** Human-readable description. */
  readonly reason: string;
}

export interface TreeVerificationDeps {
  readonly store: Store;
  readonly provider: CryptoProvider;
  readonly source: LeafSource;
  readonly signal?: AbortSignal | undefined;
  /** Called periodically with the number of leaves and the total. */
  readonly onProgress?: ((checked: number, total: number) => void) | undefined;
}

/** A tree whose leaves have been hashed. */
export interface HashedTree {
  /** Checkpoint sizes in order, read before the end of the log: the log is never shorter. */
  readonly sizes: readonly number[];
  readonly leafTiles: LeafTiles;
}

/** Ends a comparison. */
class FaultError extends Error {
  readonly fault: TreeFault;
  constructor(fault: TreeFault) {
    super(fault.reason);
    this.fault = fault;
  }
}

/**
 * Recomputes the tree from all stored leaves and compares each stored hash and each checkpoint's root. A
 * checkpoint also needs its tag and a signature by the store's own key. A separate verification checks that
 * the server wrote the records.
 */
export async function verifyTree(deps: TreeVerificationDeps): Promise<TreeVerification> {
  const { store, source } = deps;
  const sizes = await listSizes(store, source.log);
  let endReason = "the entry is missing";
  const end = await source.readSize().catch((error: unknown) => {
    endReason = explainEnd(error);
    // Reads all leaves, because only the end of the log is known to be wrong.
    return Number.POSITIVE_INFINITY;
  });
  const hasher = createLeafHasher(0, sizes);
  let fault: TreeFault | undefined;
  let leaves = 0;
  let limit = chunkLeaves;
  while (leaves < end && fault === undefined) {
    deps.signal?.throwIfAborted();
    try {
      const chunk = await source.readStored(leaves, Math.min(limit, end - leaves));
      for (const leaf of chunk) hasher.add(leaf);
      leaves += chunk.length;
      if (chunk.length === 0) fault = { leaf: leaves, reason: endReason };
    } catch (error) {
      if (!(error instanceof RecordDamagedError)) throw error;
      if (limit === 1) fault = { leaf: leaves, reason: error.message };
      // Finds the first one.
      limit = 1;
    }
    deps.onProgress?.(leaves, Number.isFinite(end) ? end : leaves);
    await setImmediate();
  }
  const compared = await compareTree(deps, { sizes, leafTiles: hasher.finish() }, fault !== undefined);
  return { ...compared, fault: compared.fault ?? fault };
}

/** @returns why the end of a log cannot be trusted; throws any other error */
function explainEnd(error: unknown): string {
  if (error instanceof RecordDamagedError) return error.message;
  if (error instanceof StoreFailureError && error.code === "CORRUPT") return readMessage(error.cause);
  throw error;
}

/** Leaves to read at once. */
const chunkLeaves = 16 * tileWidth;

/**
 * Compares stored hashes and checkpoints with hashed leaves, starting at the first of those.
 *
 * @param isCut whether further leaves exist that were not hashed
 */
export async function compareTree(
  { store, provider, source, signal }: TreeVerificationDeps,
  { sizes, leafTiles }: HashedTree,
  isCut = false,
): Promise<TreeVerification> {
  const { log } = source;
  const stored = createHashStore(store, log);
  const checkpoints = createCheckpointStore(store, log);
  const { start, size: end } = leafTiles;
  const tiles = splitHashes(leafTiles.roots);
  const published = sizes.at(-1) ?? 0;
  let hashes = 0;
  let checked = 0;
  const rows = await openRows(store, log, start);

  const readHash = async (level: number, index: number): Promise<Uint8Array | undefined> => {
    try {
      return (await stored.read(level, index, 1))[0];
    } catch (error) {
      if (!(error instanceof RecordDamagedError)) throw error;
      const reason = `the ${error.record} was changed outside the server`;
      throw new FaultError({ leaf: index * tileWidth ** level, reason });
    }
  };
  /**
   * Reads the stored roots of some leaf tiles.
   *
   * @returns undefined if one was modified: they are then read one by one
   */
  const readRoots = async (from: number, count: number): Promise<Uint8Array[] | undefined> => {
    try {
      return await stored.read(1, from, count);
    } catch (error) {
      if (error instanceof RecordDamagedError) return undefined;
      throw error;
    }
  };
  /** Compares the root of a full tile, and of the tiles above that it completes. */
  const closeTile = async (root: Uint8Array, known: Uint8Array | undefined): Promise<void> => {
    const leaves = rows.leaves() + tileWidth;
    let hash: Uint8Array | undefined = root;
    for (let level = 1; hash !== undefined; level++) {
      const span = tileWidth ** level;
      const place = { level, index: leaves / span - 1 };
      const fault = (what: string) =>
        new FaultError({ leaf: leaves - span, reason: `the ${describeHash(log, place)} ${what}` });
      const found = level === 1 ? known : await readHash(level, place.index);
      if (found !== undefined && Buffer.compare(found, hash) !== 0) throw fault("does not match its entries");
      // A hash is stored before a checkpoint that covers it is signed.
      if (found === undefined && leaves <= published) throw fault("is missing");
      if (found !== undefined) hashes += 1;
      hash = rows.add(level, hash);
    }
  };
  const checkCheckpoint = async (size: number): Promise<void> => {
    const fault = (what: string) =>
      new FaultError({ leaf: Math.max(0, size - 1), reason: `the checkpoint of size ${size} ${what}` });
    const checkpoint = await checkpoints.find(size).catch((error: unknown) => {
      if (!(error instanceof RecordDamagedError)) throw error;
      throw fault("was changed outside the server");
    });
    // It was replaced after the list was read.
    if (checkpoint === undefined) return;
    const root = rows.root(splitHashes(leafTiles.open.get(size) ?? new Uint8Array()));
    if (Buffer.compare(checkpoint.root, root) !== 0)
      throw fault("has a root that does not match the entries");
    if (!(await isSigned(store, provider, checkpoint))) throw fault("has no valid signature");
    checked += 1;
  };
  /** Finds hashes of entries that the log does not have. */
  const checkEnd = async (): Promise<void> => {
    for (let level = 1; level <= rows.height(); level++) {
      const known = await stored.count(level);
      // Another program may have added hashes for newer entries.
      const now = countHashes(level, await source.readSize());
      if (known > Math.max(countHashes(level, end), now)) {
        const reason = `the ${describeHash(log, { level, index: known - 1 })} is beyond the end of the log`;
        throw new FaultError({ leaf: end, reason });
      }
    }
  };
  const compare = async (): Promise<void> => {
    if (published > end && !isCut) {
      const reason = `the log is shorter than its checkpoint of size ${published}`;
      throw new FaultError({ leaf: end, reason });
    }
    const due = sizes.filter((size) => size >= start && size <= end).values();
    let next = due.next();
    const checkUpTo = async (size: number): Promise<void> => {
      for (; !next.done && next.value < size; next = due.next()) await checkCheckpoint(next.value);
    };
    for (let i = 0; i < tiles.length; i += tileWidth) {
      signal?.throwIfAborted();
      const some = tiles.slice(i, i + tileWidth);
      const first = start / tileWidth + i;
      const known = await readRoots(first, some.length);
      for (const [j, root] of some.entries()) {
        await checkUpTo(rows.leaves() + tileWidth);
        await closeTile(root, known ? known[j] : await readHash(1, first + j));
      }
    }
    await checkUpTo(end + 1);
    if (!isCut) await checkEnd();
  };
  const found = (fault?: TreeFault): TreeVerification => ({
    log,
    hashes,
    checkpoints: checked,
    fault,
    tilesRoot: rows.root([]),
  });
  try {
    await compare();
    return found();
  } catch (error) {
    if (error instanceof FaultError) return found(error.fault);
    throw error;
  }
}

/** A tree's last, incomplete rows of hashes by level; level 1 contains the roots of full leaf tiles. */
async function openRows(store: Store, log: string, leaves: number) {
  const stored = createHashStore(store, log);
  const rows: Uint8Array[][] = [];
  let size = leaves;
  for (let level = 1; countHashes(level, leaves) > 0; level++) {
    const count = countHashes(level, leaves);
    const first = count - (count % tileWidth);
    rows[level] = first === count ? [] : await stored.read(level, first, count - first);
  }
  return {
    /** Number of leaves below the hashes. */
    leaves: () => size,
    /** The level above the highest one with hashes. */
    height: () => Math.max(1, rows.length),
    /**
     * Adds a hash.
     *
     * @returns the row's hash if the row is full; the row is then emptied
     */
    add(level: number, hash: Uint8Array): Uint8Array | undefined {
      if (level === 1) size += tileWidth;
      const row = [...(rows[level] ?? []), hash];
      const isFull = row.length === tileWidth;
      rows[level] = isFull ? [] : row;
      return isFull ? hashPerfect(row) : undefined;
    },
    /** Computes the root of the tree with some additional leaves. */
    root: (open: readonly Uint8Array[]): Uint8Array =>
      combine([...rows.slice(1).reverse(), open].flatMap(splitPerfect)),
  };
}

/** Computes the hashes of a row's perfect trees, left to right. */
function splitPerfect(row: readonly Uint8Array[]): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (let done = 0, width = tileWidth; width > 0; width = Math.floor(width / 2))
    if (row.length - done >= width) {
      found.push(hashPerfect(row.slice(done, done + width)));
      done += width;
    }
  return found;
}

/**
 * Computes the root of the full leaf tiles from the stored hashes.
 *
 * @returns undefined if one was modified or is missing
 */
export async function readTilesRoot(
  store: Store,
  log: string,
  leaves: number,
): Promise<Uint8Array | undefined> {
  try {
    const rows = await openRows(store, log, leaves);
    return rows.root([]);
  } catch (error) {
    if (error instanceof RecordDamagedError) return undefined;
    throw error;
  }
}

/** Whether the store's key signed a checkpoint; that key needs no other record. */
async function isSigned(
  { checkpointKey }: Store,
  provider: CryptoProvider,
  { note, origin }: PublishedCheckpoint,
): Promise<boolean> {
  const key: VerifierKey = { name: origin, type: "ML-DSA-65", publicKey: checkpointKey.exportRaw() };
  const found = await verifyNote(provider, note, key);
  return found !== undefined && found !== "invalid";
}

/** Sizes to read at once. */
const chunkSizes = 1000;

/** Lists the sizes of all of a log's checkpoints. */
export async function listSizes(store: Store, log: string): Promise<number[]> {
  const checkpoints = createCheckpointStore(store, log);
  const all: number[] = [];
  for (let after = -1; ; ) {
    const sizes = await checkpoints.listSizes(after, chunkSizes);
    all.push(...sizes);
    const last = sizes.at(-1);
    if (last === undefined || sizes.length < chunkSizes) return all;
    after = last;
  }
}
