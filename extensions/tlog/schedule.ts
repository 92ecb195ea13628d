/** Publishes checkpoints in the background, about a second after the log has grown. */
import { AsyncResource } from "node:async_hooks";
import { reportAttempts } from "../../src/database/background.ts";
import type { Store } from "../../src/store/store.ts";
import { type Publisher, publishIntervalMs } from "./publisher.ts";
import type { LeafSource } from "./source.ts";

/** Publishes until the returned function is called, which publishes once more if something is due. */
export function schedulePublishing({
  store,
  source,
  publisher,
}: {
  readonly store: Store;
  readonly source: LeafSource;
  readonly publisher: Publisher;
}): () => Promise<void> {
  const attempts = reportAttempts(store.background, { work: "publish_log", about: { log: source.log } });
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isClosed = false;

  const run = async (): Promise<void> => {
    // A new store signs nothing until it has an entry or a caller asks.
    if ((await source.readSize()) === source.firstLeaves) return;
    const published = await publisher.publish();
    // Another program may have published less than a second ago.
    if (published.size < (await source.readSize())) schedule();
  };
  const attempt = (): Promise<void> => run().then(attempts.succeeded, attempts.failed);
  // Runs in the store's context: the signatures are not charged to the writing call and not part of its
  // trace.
  const schedule = AsyncResource.bind((): void => {
    if (timer !== undefined || isClosed) return;
    timer = setTimeout(() => {
      timer = undefined;
      // If the store is unavailable now, the next write or the next request for a checkpoint retries.
      running = attempt();
    }, publishIntervalMs);
    timer.unref();
  });
  const stopListening = store.onWrite(schedule);
  // The store may contain older entries, such as those written by an earlier version of the program.
  schedule();
  return async () => {
    isClosed = true;
    stopListening();
    const wasDue = timer !== undefined;
    clearTimeout(timer);
    await running;
    if (wasDue) await attempt();
  };
}
