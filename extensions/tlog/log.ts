/** A verifiable log: checkpoints, tiles and proofs up to its published size. */
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { hashLeaf } from "../../src/merkle/hashes.ts";
import { tileWidth } from "../../src/merkle/tiles.ts";
import type { Store } from "../../src/store/store.ts";
import { createCheckpointStore, type PublishedCheckpoint } from "./checkpoint-store.ts";
import { openLogSigners } from "./log-keys.ts";
import { proveConsistency, proveInclusion } from "./proofs.ts";
import { createPublisher, type PublisherDeps } from "./publisher.ts";
import { computeRoot } from "./ranges.ts";
import { schedulePublishing } from "./schedule.ts";
import type { NoteSigner } from "./sign-notes.ts";
import type { LeafSource } from "./source.ts";
import type { TilePath } from "./tile-paths.ts";
import { createTree } from "./tree.ts";

/** An open log. */
export type Log = Awaited<ReturnType<typeof openLog>>;

export interface LogDeps {
  readonly store: Store;
  readonly provider: CryptoProvider;
  readonly source: LeafSource;
  readonly origin: string;
  readonly now: () => Date;
  readonly onPublish?: PublisherDeps["onPublish"];
}

/** Opens a log and publishes its checkpoints in the background. */
export async function openLog({ store, provider, source, origin, now, onPublish }: LogDeps) {
  const { log } = source;
  const signers: readonly NoteSigner[] = await openLogSigners(store, provider, { log, origin });
  const tree = createTree(store, source);
  const checkpoints = createCheckpointStore(store, log);
  const publisher = createPublisher({
    store,
    source,
    tree,
    origin,
    signers,
    now,
    ...(onPublish && { onPublish }),
  });
  const stopPublishing = schedulePublishing({ store, source, publisher });
  let newest: PublishedCheckpoint | undefined;
  return {
    name: log,
    origin,
    /** Keys that sign checkpoints. */
    keys: signers.map(({ key }) => key),
    checkpoints,
    /** Returns the newest checkpoint; see Publisher. If the store is read-only, it may be stale. */
    async readCheckpoint(): Promise<PublishedCheckpoint> {
      try {
        return await publisher.publish();
      } catch (error) {
        const isPassing = error instanceof StoreFailureError && error.code !== "CORRUPT";
        const published = isPassing ? await checkpoints.readNewest() : undefined;
        if (published === undefined) throw error;
        return published;
      }
    },
    /**
     * Reads the published size; 0 before the first checkpoint.
     *
     * @throws RecordDamagedError
     */
    async readPublishedSize(): Promise<number> {
      const size = await checkpoints.readNewestSize();
      if (size === undefined) return 0;
      // The row's tag proves that the size was published. Rows never change, so one check is enough.
      if (newest?.size !== size) newest = await checkpoints.readNewest();
      return newest?.size ?? 0;
    },
    /**
     * Reads the bytes of a tile or its entries. The caller has checked that it is published.
     *
     * @throws RecordDamagedError
     */
    async readTile({ kind, level, index, width }: TilePath): Promise<Uint8Array> {
      if (kind === "hashes") return tree.readTile(level, index, width);
      const leaves = await source.readStored(index * tileWidth, width);
      await requireLeaves(await tree.readTile(0, index, width), leaves);
      return Buffer.concat(leaves.flatMap((leaf) => [encodeLength(leaf), leaf]));
    },
    /**
     * Reads a leaf's data.
     *
     * @throws RecordDamagedError if it was modified
     */
    async readLeaf(index: number): Promise<Uint8Array> {
      const [leaf] = await source.readTrue(index, 1);
      if (leaf === undefined) throw new RangeError(`the log ${log} has no leaf ${index}`);
      return leaf;
    },
    computeRoot: (size: number) => computeRoot(size, tree.readNodes),
    proveInclusion: (index: number, size: number) => proveInclusion(index, size, tree.readNodes),
    proveConsistency: (from: number, to: number) => proveConsistency(from, to, tree.readNodes),
    close: stopPublishing,
  };

  /** The tile is authentic, so leaves that match its hashes are too. */
  async function requireLeaves(tile: Uint8Array, leaves: readonly Uint8Array[]): Promise<void> {
    if (Buffer.compare(Buffer.concat(leaves.map(hashLeaf)), tile) !== 0)
      throw new StoreFailureError("CORRUPT", new Error(`leaves of the log ${log} were changed`));
  }
}

/** c2sp.org/tlog-tiles: each entry in a bundle is prefixed with its length in two bytes, big-endian. */
function encodeLength({ length }: Uint8Array): Buffer {
  return Buffer.of(length >> 8, length & 0xff);
}
