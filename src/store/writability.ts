/** Monitors whether a store is writable, for the server's readiness check. */
import type { Background } from "../database/background.ts";
import { poll } from "../database/poll.ts";
import type { Reserve } from "../database/reserve.ts";
import { describeProblem, StoreFailureError } from "../database/store-error.ts";

/** Milliseconds between probes while the store is not writable. */
const probeIntervalMs = 1000;
/** Milliseconds without a write before a probe writes. */
const idleMs = 10_000;

/** Why a store is not writable. */
export interface StoreProblem {
  /** A few words for readiness checks, which anyone may read, without paths. */
  readonly reason: string;
  /** For the log only. */
  readonly cause: unknown;
}

/** Called with a problem when it begins or changes, and with undefined when it ends. */
export type OnProblem = (problem: StoreProblem | undefined) => void;

/** What is known about a store's writes. */
export interface Writability {
  readonly problem: StoreProblem | undefined;
  /** Call this after each transaction. */
  wrote(): void;
  /**
   * Call this when a transaction or a read fails. A probe decides: the cause may have passed, or affect one
   * call only.
   */
  failed(): void;
  /**
   * Probes as long as anyone listens.
   *
   * @param probe writes something that changes nothing; throws StoreFailureError
   * @returns a function that unsubscribes
   */
  watch(listener: OnProblem, probe: Probe): () => void;
}

type Probe = () => Promise<void>;

export interface WritabilityDeps {
  /** Undefined if the store has none. */
  readonly reserve: Reserve | undefined;
  readonly background: Pick<Background, "started" | "failed">;
  /** Returns milliseconds of a monotonic clock. */
  readonly nowMs?: () => number;
}

/** @returns what is known about writes from now on */
export function createWritability({
  reserve,
  background,
  nowMs = () => performance.now(),
}: WritabilityDeps): Writability {
  const listeners = new Map<OnProblem, Probe>();
  let problem: StoreProblem | undefined;
  let lastWriteMs = nowMs();
  let checking: Promise<void> | undefined;

  const set = (found: StoreProblem | undefined): void => {
    if (found?.reason === problem?.reason) return;
    problem = found;
    for (const listener of listeners.keys()) listener(found);
  };
  const wrote = (): void => {
    lastWriteMs = nowMs();
    // A write that fits into the reserve does not prove that the disk has room for more.
    if (reserve?.isReleased !== true) set(undefined);
  };
  const check = async (probe: Probe): Promise<void> => {
    try {
      await reserve?.restore();
      await probe();
    } catch (error) {
      const cause = error instanceof StoreFailureError ? error.cause : error;
      return set({ reason: describeProblem(error), cause });
    }
    if (reserve?.isReleased) set(noRoom);
  };
  const checkOnce = (probe: Probe): Promise<void> => {
    checking ??= check(probe).finally(() => {
      checking = undefined;
    });
    return checking;
  };
  return {
    get problem() {
      return problem;
    },
    wrote,
    failed: () => {
      // A known problem is probed every second.
      const [probe] = listeners.values();
      if (probe !== undefined && problem === undefined) void checkOnce(probe);
    },
    watch(listener, probe) {
      listeners.set(listener, probe);
      if (reserve?.isReleased) void checkOnce(probe);
      const stop = poll({ work: "probe_store", everyMs: probeIntervalMs, background }, async () => {
        const isDue = problem !== undefined || nowMs() - lastWriteMs >= idleMs;
        // The reserve may be missing, or another program of this store may have released it.
        if (isDue || reserve?.isWhole() === false) await checkOnce(probe);
      });
      return () => {
        listeners.delete(listener);
        void stop();
      };
    },
  };
}

const noRoom: StoreProblem = { reason: "disk full", cause: new Error("the store's reserve is in use") };
