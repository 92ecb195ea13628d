/** Writes refusals to the audit log, within each user's budget. */
import type { NewAuditEntry } from "../audit/chain.ts";
import { RefusalBudget } from "../audit/refusal-budget.ts";
import type { Background } from "../database/background.ts";
import { poll } from "../database/poll.ts";
import type { Store } from "./store.ts";

/** Milliseconds between checks for due counts. */
const pollIntervalMs = 5000;

export interface RefusalDeps {
  readonly batch: Store["batch"];
  readonly now: () => Date;
  readonly background: Pick<Background, "started" | "failed">;
  /** Called for each refusal that exceeds a budget. */
  readonly onUnrecorded?: (() => void) | undefined;
}

/** Starts recording refusals. */
export function createRefusals({ batch, now, background, onUnrecorded }: RefusalDeps) {
  const budget = new RefusalBudget();
  const nowMs = (): number => now().getTime();
  const append = batch(async ({ audit }, entries: readonly NewAuditEntry[]) =>
    entries.map((entry) => audit(entry)),
  );
  const writeDue = async (isClosing = false): Promise<void> => {
    const due = budget.takeDue(nowMs(), isClosing);
    await Promise.all(
      due.map(({ entry, count }) =>
        append(entry).catch(() => budget.addUnrecorded(entry.user, count, nowMs())),
      ),
    );
  };
  const stop = poll({ work: "write_refusals", everyMs: pollIntervalMs, background }, () => writeDue());
  return {
    /**
     * Resolves when the entry is on disk or the refusal has been counted.
     *
     * @throws StoreFailureError
     */
    async record(entry: NewAuditEntry): Promise<void> {
      const fate = budget.take(entry, nowMs());
      if (fate === "unrecorded") onUnrecorded?.();
      if (fate !== "write") return;
      try {
        await append(entry);
      } catch (error) {
        budget.undo(entry, nowMs());
        throw error;
      }
    },
    /** Writes the counts that are due. */
    writeDue: () => writeDue(),
    /** Writes all counts and stops. */
    async close(): Promise<void> {
      await stop();
      await writeDue(true);
    },
  };
}
