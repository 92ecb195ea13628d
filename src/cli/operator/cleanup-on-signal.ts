/** Signals that end a program which does not listen to them. */
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Does work with files of its own, which are gone in the end: also when it fails, or when a signal ends the program. */
export async function withCleanup<T>(remove: () => void, work: () => Promise<T>): Promise<T> {
  const onSignal = (signal: NodeJS.Signals): void => {
    remove();
    // Nobody listens any more, so this time it ends the program.
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
