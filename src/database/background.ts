/** Reporting for background work, which has no caller to receive its failures. */

export interface BackgroundFailure {
  /** Name of the work in metrics and log lines: "sweep_answers". */
  readonly work: string;
  readonly error: unknown;
  /** Identifies the item that failed, without secrets. */
  readonly about?: Readonly<Record<string, string>>;
  /**
   * Whether the failure repeats earlier ones, as when polling an unreachable database. It is counted but not
   * logged.
   */
  readonly isRepeated?: boolean;
}

/** Observes background work. */
export interface Background {
  /** Called once before the work starts, so that its failure counter starts at 0. */
  started(work: string): void;
  failed(failure: BackgroundFailure): void;
  /**
   * Called periodically for work with due times.
   *
   * @param items number of overdue items
   * @param oldestSeconds how long the oldest item has been due; 0 if nothing is overdue
   */
  overdue(work: string, items: number, oldestSeconds: number): void;
}

/** For commands that end before anyone would read metrics. */
export const unobserved: Background = { started: () => {}, failed: () => {}, overdue: () => {} };

/** Callbacks to run after each attempt at recurring work. */
export interface Attempts {
  succeeded(): void;
  failed(error: unknown): void;
}

/**
 * Reports failures of recurring work. Every failure is counted. In a row of failures, only the first, second,
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
