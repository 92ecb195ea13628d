/** What the server does without a caller who would hear of a failure. */

/** A failure of such work. */
export interface BackgroundFailure {
  /** Names the work in metrics and log lines: "sweep_answers". */
  readonly work: string;
  readonly error: unknown;
  /** Identifies what the work was for, without secrets. */
  readonly about?: Readonly<Record<string, string>>;
  /** Whether it is like the ones before, as of a poll while the database is away. It is counted, but not logged. */
  readonly isRepeated?: boolean;
}

/** Observes work without a caller. */
export interface Background {
  /** Called once before the work begins, so that its failures count from 0. */
  started(work: string): void;
  failed(failure: BackgroundFailure): void;
  /**
   * Called from time to time for work that has due times.
   *
   * @param items how many are overdue
   * @param oldestSeconds how long the oldest of them is due; 0 if there is none
   */
  overdue(work: string, items: number, oldestSeconds: number): void;
}

/** For commands that end before anybody would ask. */
export const unobserved: Background = { started: () => {}, failed: () => {}, overdue: () => {} };

/** What to call after each attempt at work that is tried again and again. */
export interface Attempts {
  succeeded(): void;
  failed(error: unknown): void;
}

/**
 * Reports failures of work that is tried again and again. Each failure is counted. Of many in a row, the first, second,
 * fourth, eighth and so on are logged.
 */
export function reportAttempts(
  background: Pick<Background, "started" | "failed">,
  what: Pick<BackgroundFailure, "work" | "about">,
): Attempts {
  background.started(what.work);
  let failures = 0;
  return {
    succeeded: () => {
      failures = 0;
    },
    failed: (error) => {
      failures += 1;
      background.failed({ ...what, error, isRepeated: !Number.isInteger(Math.log2(failures)) });
    },
  };
}
