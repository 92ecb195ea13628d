/** Opens the metrics and, if configured, tracing. */
import { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import { createMeasurePart, type MeasurePart, type OpenTracing, type Tracing } from "./calls/call-span.ts";
import type { Config } from "./config.ts";
import type { Background } from "./database/background.ts";
import { findReason } from "./errors.ts";
import { commit, readVersion } from "./program-files.ts";
import { currentSpan } from "./server/interceptors/caller.ts";
import { createMetrics, type Metrics } from "./server/metrics.ts";

/** The metrics and traces of a server. */
export interface Observability {
  readonly metrics: Metrics;
  /** Observes the store. */
  readonly store: {
    readonly background: Background;
    readonly onCommit: Metrics["storeCommitted"];
    readonly onRefusalUnrecorded: Metrics["refusalUnrecorded"];
    /** Measures a write. Undefined if calls are not traced. */
    readonly measureWrite: (<T>(write: () => Promise<T>) => Promise<T>) | undefined;
  };
  /** Undefined if calls are not traced. */
  readonly tracing: Tracing | undefined;
  /** Undefined if calls are not traced. */
  readonly measurePart: MeasurePart | undefined;
  /** Sends the remaining spans. */
  close(): Promise<void>;
}

/**
 * Starts tracing. Returns undefined if tracing is disabled.
 *
 * @throws ConfigError
 */
export type StartTracing = (config: Config, logger: Logger) => Promise<OpenTracing | undefined>;

/**
 * Opens the metrics, and tracing if configured.
 *
 * @throws ConfigError
 */
export async function openObservability(
  config: Config,
  logger: Logger,
  startTracing: StartTracing | undefined,
): Promise<Observability> {
  const metrics = createMetrics();
  const store = {
    background: observeBackground(metrics, logger),
    onCommit: metrics.storeCommitted,
    onRefusalUnrecorded: metrics.refusalUnrecorded,
  };
  metrics.nameBuild({ version: readVersion(), commit });
  const tracing = await startTracing?.(config, logger);
  if (tracing === undefined) return { metrics, store: { ...store, measureWrite: undefined }, ...noTracing };
  metrics.watchSpans(tracing);
  const measurePart = createMeasurePart(currentSpan);
  const measureWrite = <T>(write: () => Promise<T>): Promise<T> => measurePart("store commit", {}, write);
  return { metrics, store: { ...store, measureWrite }, tracing, measurePart, close: tracing.close };
}

/** Counts failures of background work and logs those that are not repeated. */
export function observeBackground(
  metrics: Pick<Metrics, "backgroundStarted" | "backgroundFailed" | "workOverdue">,
  logger: Pick<Logger, "error">,
): Background {
  return {
    started: metrics.backgroundStarted,
    failed({ work, error, about, isRepeated }) {
      metrics.backgroundFailed(work);
      if (isRepeated !== true)
        logger.error(
          { work, ...about, ...describeFailure(error) },
          "background work failed and will be retried",
        );
    },
    overdue: metrics.workOverdue,
  };
}

/** A refusal has a reason and a sentence. Its details contain message descriptors, which would fill the log. */
function describeFailure(error: unknown): object {
  if (!(error instanceof ConnectError)) return { err: error };
  const { rawMessage: message, cause } = error;
  return { reason: findReason(error), message, ...(cause !== undefined && { err: cause }) };
}

const noTracing = {
  tracing: undefined,
  measurePart: undefined,
  close: async () => {},
};
