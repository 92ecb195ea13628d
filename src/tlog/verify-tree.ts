/** Verifies the stored hashes and checkpoints of a log against its records. */
import { setImmediate } from "node:timers/promises";
import type { CryptoProvider } from "../crypto/provider.ts";
import { RecordDamagedError } from "../database/store-error.ts";
import { hashChildren, hashLeaf, hashPerfect } from "../merkle/hashes.ts";
import { combine } from "../merkle/ranges.ts";
import { tileWidth } from "../merkle/tiles.ts";
import type { VerifierKey } from "../signed-notes/verifier-keys.ts";
import { verifyNote } from "../signed-notes/verify.ts";
import type { Store } from "../store/store.ts";
import { createCheckpointStore, type PublishedCheckpoint } from "./checkpoint-store.ts";
import { createHashStore, describeHash } from "./hash-store.ts";
import type { LeafSource } from "./source.ts";

/** The result of a verification. */
export interface TreeVerification {
  readonly log: string;
  /** The stored hashes and checkpoints that agree with the records. */
  readonly hashes: number;
  readonly checkpoints: number;
  readonly fault: TreeFault | undefined;
}

/** The first thing that does not agree. */
export interface TreeFault {
  /** The index of the first leaf that it covers. */
  readonly leaf: number;
  /** For a person. */
  readonly reason: string;
}

/** The dependencies of the verification. */
export interface TreeVerificationDeps {
  readonly store: Store;
  readonly provider: CryptoProvider;
  readonly source: LeafSource;
  readonly signal?: AbortSignal | undefined;
  /** Called from time to time with the number of leaves and the total. */
  readonly onProgress?: ((checked: number, total: number) => void) | undefined;
}

/** Ends a walk. */
class FaultError extends Error {
  readonly fault: TreeFault;
  constructor(fault: TreeFault) {
    super(fault.reason);
    this.fault = fault;
  }
}

/**
 * Computes the tree again from all leaves as they are stored, and compares: each stored hash, and the root of each
 * checkpoint, which also needs its tag and the signature of the store's own key. Another verification
 * checks that the server wrote the records.
 */
export async function verifyTree(deps: TreeVerificationDeps): Promise<TreeVerification> {
  const { source } = deps;
  const walk = createWalk(deps);
  try {
    await walk.run();
    return { log: source.log, ...walk.counts(), fault: undefined };
  } catch (error) {
    if (error instanceof FaultError) return { log: source.log, ...walk.counts(), fault: error.fault };
    if (!(error instanceof RecordDamagedError)) throw error;
    return { log: source.log, ...walk.counts(), fault: { leaf: walk.position(), reason: error.message } };
  }
}

function createWalk({ store, provider, source, signal, onProgress }: TreeVerificationDeps) {
  const stored = createHashStore(store, source.log);
  const checkpoints = createCheckpointStore(store, source.log);
  let hashes = 0;
  let checked = 0;
  let leaves = 0;
  const tree = growTree();
  /** The hashes of the last tile of each level, until it is full. */
  const open: Uint8Array[][] = [[]];

  /** Compares the root of a full tile, and of the tiles above that it fills. */
  const closeTiles = async (published: number): Promise<void> => {
    for (let level = 0; open[level]?.length === tileWidth; level++) {
      const hash = hashPerfect(open[level] ?? []);
      open[level] = [];
      const above = open[level + 1] ?? [];
      open[level + 1] = [...above, hash];
      const span = tileWidth ** (level + 1);
      const place = { level: level + 1, index: leaves / span - 1 };
      const [known] = await readHash(place.level, place.index);
      const fault = (what: string) =>
        new FaultError({ leaf: leaves - span, reason: `the ${describeHash(source.log, place)} ${what}` });
      if (known !== undefined && Buffer.compare(known, hash) !== 0)
        throw fault("is not the hash of its entries");
      // A hash is stored before a checkpoint that covers it is signed.
      if (known === undefined && leaves <= published) throw fault("is missing");
      if (known !== undefined) hashes += 1;
    }
  };
  const readHash = (level: number, index: number): Promise<Uint8Array[]> =>
    stored.read(level, index, 1).catch((error: unknown) => {
      if (!(error instanceof RecordDamagedError)) throw error;
      const leaf = index * tileWidth ** level;
      throw new FaultError({ leaf, reason: `the ${error.record} was changed outside the server` });
    });

  const checkCheckpoint = async (size: number): Promise<void> => {
    const fault = (what: string) =>
      new FaultError({ leaf: Math.max(0, size - 1), reason: `the checkpoint of size ${size} ${what}` });
    const checkpoint = await checkpoints.find(size).catch((error: unknown) => {
      if (!(error instanceof RecordDamagedError)) throw error;
      throw fault("was changed outside the server");
    });
    // It was replaced since the list was read.
    if (checkpoint === undefined) return;
    if (Buffer.compare(checkpoint.root, tree.root()) !== 0)
      throw fault("has a root that is not that of the entries");
    if (!(await isSigned(store, provider, checkpoint))) throw fault("has no valid signature");
    checked += 1;
  };

  /** Finds hashes of entries that the log does not have. */
  const checkEnd = async (end: number): Promise<void> => {
    for (let level = 1; level <= open.length; level++) {
      const known = await stored.count(level);
      const complete = Math.floor(end / tileWidth ** level);
      // Another program may have added hashes of entries that were written since.
      const now = Math.floor((await source.readSize()) / tileWidth ** level);
      if (known > Math.max(complete, now)) {
        const reason = `the ${describeHash(source.log, { level, index: known - 1 })} is beyond the end of the log`;
        throw new FaultError({ leaf: end, reason });
      }
    }
  };

  return {
    counts: () => ({ hashes, checkpoints: checked }),
    position: () => leaves,
    async run(): Promise<void> {
      // The sizes are read first: a log is never shorter than its checkpoints.
      const sizes = await listAll(checkpoints);
      const published = sizes.at(-1) ?? 0;
      const end = await source.readSize();
      if (published > end) {
        const reason = `the log is shorter than its checkpoint of size ${published}`;
        throw new FaultError({ leaf: end, reason });
      }
      let next = 0;
      const checkHere = async (): Promise<void> => {
        for (; sizes[next] === leaves; next++) await checkCheckpoint(leaves);
      };
      await checkHere();
      while (leaves < end) {
        signal?.throwIfAborted();
        const chunk = await source.readStored(leaves, Math.min(tileWidth, end - leaves));
        if (chunk.length === 0) throw new FaultError({ leaf: leaves, reason: "the entry is missing" });
        for (const leaf of chunk) {
          const leafHash = hashLeaf(leaf);
          tree.add(leafHash);
          open[0]?.push(leafHash);
          leaves += 1;
          if (sizes[next] === leaves) await checkHere();
          if (leaves % tileWidth === 0) await closeTiles(published);
        }
        onProgress?.(leaves, end);
        await setImmediate();
      }
      await checkEnd(end);
    },
  };
}

/** Computes the root of a tree that grows, from the hashes of its leaves in order. */
function growTree() {
  /** The roots of perfect subtrees, by height: the digits of the number of leaves in base two. */
  const subtrees: (Uint8Array | undefined)[] = [];
  return {
    add(leafHash: Uint8Array): void {
      let hash = leafHash;
      let height = 0;
      for (; subtrees[height] !== undefined; height++) {
        hash = hashChildren(subtrees[height] as Uint8Array, hash);
        subtrees[height] = undefined;
      }
      subtrees[height] = hash;
    },
    root: (): Uint8Array => combine(subtrees.filter((hash) => hash !== undefined).reverse()),
  };
}

/** Tells whether the key of the store signed a checkpoint: that key needs no other record. */
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

async function listAll(checkpoints: ReturnType<typeof createCheckpointStore>): Promise<number[]> {
  const all: number[] = [];
  for (let after = -1; ; ) {
    const sizes = await checkpoints.listSizes(after, chunkSizes);
    all.push(...sizes);
    const last = sizes.at(-1);
    if (last === undefined || sizes.length < chunkSizes) return all;
    after = last;
  }
}
