import type { Draft } from "../../database/drafts.ts";

/** Signals that end a program by default. */
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Creates a temporary file or directory, works with it, and removes it, even after a failure or a signal. */
export async function withDraft<T>(make: () => Draft, work: (draft: Draft) => Promise<T>): Promise<T> {
  let draft: Draft | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    draft?.remove();
    // The one-shot handler has been removed, so this time the signal ends the program.
    process.kill(process.pid, signal);
  };
  // Install handlers first: a signal just after creation would leave the draft behind.
  for (const signal of signals) process.once(signal, onSignal);
  try {
    draft = make();
    return await work(draft);
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
    draft?.remove();
  }
}
