/** Tracks worker threads of this process, so that a test can end one like a crash would. */
import type { Worker } from "node:worker_threads";
import { onTestFinished } from "vitest";

/**
 * Watches threads with this name that start from now on, until the end of the test.
 *
 * @param options.endAtOnce terminates each thread before it runs any code
 */
export function watchThreads(name: string, { endAtOnce = false } = {}) {
  const running = new Set<Worker>();
  let started = 0;
  const onWorker = (worker: Worker): void => {
    if (worker.threadName !== name) return;
    started += 1;
    running.add(worker);
    worker.once("exit", () => running.delete(worker));
    if (endAtOnce) void worker.terminate();
  };
  process.on("worker", onWorker);
  onTestFinished(() => void process.off("worker", onWorker));
  return {
    /** The running threads. */
    list: (): readonly Worker[] => [...running],
    /** Terminates the running threads, and resolves when they have ended. */
    async endAll(): Promise<void> {
      await Promise.all([...running].map((worker) => worker.terminate()));
    },
    /** The number of threads started so far. */
    get started(): number {
      return started;
    },
  };
}
