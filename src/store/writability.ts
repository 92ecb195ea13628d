/** Watches whether a store can be written, for the readiness of a server. */
import type { Background } from "../database/background.ts";
import { poll } from "../database/poll.ts";
import type { Reserve } from "../database/reserve.ts";
import { describeProblem, StoreFailureError } from "../database/store-error.ts";

/** Milliseconds between probes while a store cannot be written. */
const probeIntervalMs = 1000;
/** Milliseconds without a write after which a probe writes. */
const idleMs = 10_000;

/** Why a store cannot be written. */
export interface StoreProblem {
  /** A few words for whoever asks whether the server is ready, without paths. */
  readonly reason: string;
  /** For the log only. */
  readonly cause: unknown;
}

/** Receives a problem when it begins or changes, and undefined when it is over. */
export type OnProblem = (problem: StoreProblem | undefined) => void;

/** What is known of the writes of a store. */
export interface Writability {
  readonly problem: StoreProblem | undefined;
  /** Call this after each transaction. */
  wrote(): void;
  /** Call this when a transaction or a read failed. A probe decides: the cause may be over, or that of one call. */
  failed(): void;
  /**
   * Probes while someone listens.
   *
   * @param probe writes something that changes nothing. It throws StoreFailureError
   * @returns a function that stops it
   */
  watch(listener: OnProblem, probe: Probe): () => void;
}

type Probe = () => Promise<void>;

/** The dependencies of a watch. */
export interface WritabilityDeps {
  /** Undefined if the store has none. */
  readonly reserve: Reserve | undefined;
  readonly background: Pick<Background, "started" | "failed">;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs?: () => number;
}

/** @returns what is known of the writes, from now on */
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
    // What fits into the reserve does not tell that there is room for more.
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
      // A known problem is probed each second.
      const [probe] = listeners.values();
      if (probe !== undefined && problem === undefined) void checkOnce(probe);
    },
    watch(listener, probe) {
      listeners.set(listener, probe);
      if (reserve?.isReleased) void checkOnce(probe);
      const stop = poll({ work: "probe_store", everyMs: probeIntervalMs, background }, async () => {
        const isDue = problem !== undefined || nowMs() - lastWriteMs >= idleMs;
        // The reserve may be missing, or may have been given up by another program of this store.
        if (isDue || reserve?.isWhole() === false) await checkOnce(probe);
      });
      return () => {
        listeners.delete(listener);
        void stop();
      };
    },
  };
}

const noRoom: StoreProblem = { reason: "disk full", cause: new Error("the reserve of the store is in use") };
