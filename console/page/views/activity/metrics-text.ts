/** Reads the text of GET /metrics (Prometheus exposition format 0.0.4), as far as it is about calls. */
import { parseMetrics } from "../../../../src/client/prometheus-text.ts";

/** Counts of one RPC since the server started. */
export interface MethodCounts {
  readonly answered: number;
  /** Calls that were refused or failed. */
  readonly failed: number;
  /** Sum of the durations, and their number. */
  readonly seconds: number;
  readonly measured: number;
}

/** The state of the server's counters at one time. */
export interface Snapshot {
  /** Milliseconds of the page's clock. */
  readonly at: number;
  readonly methods: ReadonlyMap<string, MethodCounts>;
  /** Calls by their duration, all RPCs together: by the upper bound in seconds, each with those below it. */
  readonly durations: ReadonlyMap<number, number>;
}

const noCounts: MethodCounts = { answered: 0, failed: 0, seconds: 0, measured: 0 };

/** @param at when the text was read */
export function readSnapshot(text: string, at: number): Snapshot {
  const methods = new Map<string, MethodCounts>();
  const durations = new Map<number, number>();
  for (const { name, labels, value } of parseMetrics(text)) {
    const method = labels.get("method") ?? "";
    const counts = methods.get(method) ?? noCounts;
    if (name === "qsp_calls_total") {
      const field = labels.get("code") === "OK" ? "answered" : "failed";
      methods.set(method, { ...counts, [field]: counts[field] + value });
    } else if (name === "qsp_call_duration_seconds_sum") methods.set(method, { ...counts, seconds: value });
    else if (name === "qsp_call_duration_seconds_count") methods.set(method, { ...counts, measured: value });
    else if (name === "qsp_call_duration_seconds_bucket") {
      const le = labels.get("le");
      const bound = le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le);
      durations.set(bound, (durations.get(bound) ?? 0) + value);
    }
  }
  return { at, methods, durations };
}
