/** Signs a log's checkpoints: at most one per size and one per interval. */
import { StoreFailureError } from "../../src/database/store-error.ts";
import type { Store } from "../../src/store/store.ts";
import { type Checkpoint, formatCheckpoint } from "./checkpoint.ts";
import { type CheckpointStore, createCheckpointStore, type PublishedCheckpoint } from "./checkpoint-store.ts";
import { formatNote } from "./note.ts";
import { computeRoot } from "./ranges.ts";
import type { NoteSigner } from "./sign-notes.ts";
import type { LeafSource } from "./source.ts";
import type { Tree } from "./tree.ts";

/** Minimum milliseconds between two signatures, over all callers and all programs that share the store. */
export const publishIntervalMs = 1000;

export interface PublisherDeps {
  readonly store: Store;
  readonly source: LeafSource;
  readonly tree: Tree;
  readonly origin: string;
  readonly signers: readonly NoteSigner[];
  readonly now: () => Date;
  /** Called with the log's size, the newest checkpoint's size, and the time that a new one took. */
  readonly onPublish?: (size: number, published: number, seconds: number | undefined) => void;
}

export interface Publisher {
  /**
   * Returns the newest checkpoint, after signing a new one if the log has grown and the interval has passed.
   * Concurrent calls share the work.
   *
   * @throws StoreFailureError CORRUPT instead of signing a contradiction of an earlier checkpoint;
   *   RecordDamagedError
   */
  publish(): Promise<PublishedCheckpoint>;
}

export function createPublisher(deps: PublisherDeps): Publisher {
  const { source, origin, now, onPublish = () => {} } = deps;
  const checkpoints = createCheckpointStore(deps.store, source.log);
  let running: Promise<PublishedCheckpoint> | undefined;
  // The newest tree that this program has seen, to detect that an older store was restored.
  let seen: Checkpoint | undefined;

  const run = async (): Promise<PublishedCheckpoint> => {
    const newest = await checkpoints.readNewest();
    requireNotOlder(newest, seen);
    // The size is read after the checkpoint, so the checkpoint cannot be larger.
    const size = await source.readSize();
    if (newest && newest.size > size) throw contradiction("the log is shorter than its newest checkpoint");
    if (newest && !isDue(newest, { origin, size }, now())) {
      onPublish(size, newest.size, undefined);
      return newest;
    }
    const startedMs = performance.now();
    const root = await computeNewRoot(deps, newest, size);
    const published = await signOnce(deps, checkpoints, { newest, checkpoint: { origin, size, root } });
    onPublish(size, published.size, (performance.now() - startedMs) / 1000);
    return published;
  };
  return {
    publish() {
      running ??= run()
        .then((published) => {
          seen = published;
          return published;
        })
        .finally(() => {
          running = undefined;
        });
      return running;
    },
  };
}

/** Whether a new checkpoint is due. */
function isDue(newest: PublishedCheckpoint, { origin, size }: Omit<Checkpoint, "root">, now: Date): boolean {
  const ageMs = now.getTime() - newest.signedAt.getTime();
  // Tolerates clock skew: our clock may have been set back, and another server's may be slightly ahead.
  const isOver = Math.abs(ageMs) >= publishIntervalMs;
  return isOver && (newest.size < size || newest.origin !== origin);
}

function requireNotOlder(newest: Checkpoint | undefined, seen: Checkpoint | undefined): void {
  if (seen === undefined) return;
  const isOther = newest?.size === seen.size && Buffer.compare(newest.root, seen.root) !== 0;
  if (newest === undefined || newest.size < seen.size || isOther)
    throw contradiction("a newer log's checkpoints were replaced by an older log's");
}

/**
 * Computes the root of a size from records that the server wrote, and checks that the same hashes give the
 * last signed root: then a consistency proof exists between the two.
 */
async function computeNewRoot(
  { tree }: PublisherDeps,
  newest: PublishedCheckpoint | undefined,
  size: number,
): Promise<Uint8Array> {
  await tree.catchUp(size);
  if (newest !== undefined) {
    const before = await computeRoot(newest.size, tree.readNodes);
    if (Buffer.compare(before, newest.root) !== 0)
      throw contradiction(`the log does not begin with the entries of its checkpoint of size ${newest.size}`);
  }
  return computeRoot(size, tree.readNodes);
}

/** Signs and stores a checkpoint, unless another program has published one since `newest`. */
function signOnce(
  { store, signers, now }: PublisherDeps,
  checkpoints: CheckpointStore,
  {
    newest,
    checkpoint,
  }: { readonly newest: PublishedCheckpoint | undefined; readonly checkpoint: Checkpoint },
): Promise<PublishedCheckpoint> {
  // Only one program writes at a time, so no two programs sign different successors of the same checkpoint.
  return store.write(async ({ db }) => {
    const meanwhile = await checkpoints.readNewest(db);
    if (meanwhile && !isSame(meanwhile, newest)) return meanwhile;
    if (newest && !meanwhile) throw contradiction("the newest checkpoint has disappeared");
    const text = formatCheckpoint(checkpoint);
    const signedAt = now();
    const signatures = await Promise.all(signers.map((signer) => signer.sign(text, signedAt)));
    const note = { text, signatures };
    await checkpoints.insert(db, { ...checkpoint, signedAt }, formatNote(note));
    return { ...checkpoint, signedAt, note };
  });
}

function isSame(one: PublishedCheckpoint, other: PublishedCheckpoint | undefined): boolean {
  return other !== undefined && one.note.text === other.note.text;
}

function contradiction(what: string): StoreFailureError {
  return new StoreFailureError("CORRUPT", new Error(what));
}
