/** Signals that end a program without a handler for them. */
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs work that has temporary files, and removes them at the end, also after a failure or a signal. */
export async function withCleanup<T>(remove: () => void, work: () => Promise<T>): Promise<T> {
  const onSignal = (signal: NodeJS.Signals): void => {
    remove();
    // The handler ran once and is gone, so this time the signal ends the program.
    process.kill(process.pid, signal);
  };
  for (const signal of signals) process.once(signal, onSignal);
  try {
    return await work();
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
    remove();
  }
}
