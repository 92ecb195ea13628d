/** Counts the messages to the threads of one store. Other stores of the process have threads and background work too. */
import { Worker } from "node:worker_threads";
import { vi } from "vitest";

/** Returns the threads that received messages during some work, once for each message. */
async function listReceivers(work: () => Promise<unknown>): Promise<readonly Worker[]> {
  const posted = vi.spyOn(Worker.prototype, "postMessage");
  try {
    await work();
    // The receiver of each call.
    return posted.mock.contexts as Worker[];
  } finally {
    posted.mockRestore();
  }
}

/**
 * Opens a store.
 *
 * @returns the store, and a function that counts the messages to its threads during some work
 */
export async function openCounted<Store>(open: () => Promise<Store>) {
  let store: Store | undefined;
  const own = new Set(
    await listReceivers(async () => {
      store = await open();
    }),
  );
  const countMessages = async (work: () => Promise<unknown>): Promise<number> =>
    (await listReceivers(work)).filter((thread) => own.has(thread)).length;
  return { store: store as Store, countMessages };
}
