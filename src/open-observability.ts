/** Opens what operators watch the server with: its metrics, and its traces if they are wanted. */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { traceSettings } from "../extensions/tracing/trace-settings.ts";
import type { Config } from "./config.ts";
import type { Background } from "./database/background.ts";
import { commit, readVersion } from "./program-files.ts";
import { createMeasurePart, type MeasurePart, type Tracing } from "./protocol/call-span.ts";
import { currentSpan } from "./server/interceptors/caller.ts";
import { createMetrics, type Metrics } from "./server/metrics.ts";

/** The metrics and the traces of a server. */
export interface Observability {
  readonly metrics: Metrics;
  /** Watches the store. */
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
  /** Sends what remains of the traces. */
  close(): Promise<void>;
}

/** Opens the metrics, and tracing if a collector is named. @throws ConfigError */
export async function openObservability(config: Config, logger: Logger): Promise<Observability> {
  const metrics = createMetrics();
  const store = {
    background: observeBackground(metrics, logger),
    onCommit: metrics.storeCommitted,
    onRefusalUnrecorded: metrics.refusalUnrecorded,
  };
  metrics.nameBuild({ version: readVersion(), commit });
  const settings = traceSettings(config, process.env);
  if (settings === undefined) return { metrics, store: { ...store, measureWrite: undefined }, ...noTracing };
  // The SDK takes time and memory, which only those pay who want traces.
  const { openTracing } = await import("../extensions/tracing/open-tracing.ts");
  const tracing = openTracing(settings, { logger, instanceId: randomUUID() });
  metrics.watchSpans(tracing);
  const measurePart = createMeasurePart(currentSpan);
  const measureWrite = <T>(write: () => Promise<T>): Promise<T> => measurePart("store commit", {}, write);
  return { metrics, store: { ...store, measureWrite }, tracing, measurePart, close: tracing.close };
}

/** Counts the failures of work without a caller, and logs those that are not repeated. */
export function observeBackground(
  metrics: Pick<Metrics, "backgroundStarted" | "backgroundFailed" | "workOverdue">,
  logger: Pick<Logger, "error">,
): Background {
  return {
    started: metrics.backgroundStarted,
    failed({ work, error, about, isRepeated }) {
      metrics.backgroundFailed(work);
      if (isRepeated !== true)
        logger.error({ work, ...about, err: error }, "work without a caller failed, and is tried again");
    },
    overdue: metrics.workOverdue,
  };
}

const noTracing = {
  tracing: undefined,
  measurePart: undefined,
  close: async () => {},
};
