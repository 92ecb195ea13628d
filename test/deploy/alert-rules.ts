/** The alert rules of deploy/, and for each one a time series that makes it fire. */
import { parse } from "yaml";
import { readDeployed } from "./unit-file.ts";

/** A rule as written in the file. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly AlertRule[] }[];
}

/** Reads all alert rules. */
export function readAlertRules(): AlertRule[] {
  const { groups }: RuleFile = parse(readDeployed("prometheus/alerts.yaml"));
  return groups.flatMap(({ rules }) => rules);
}

/** A server's time series: a gauge has a value, a counter grows. The job and instance labels are added. */
export type Series = { readonly name: string; readonly labels?: Readonly<Record<string, string>> } & (
  | { readonly value: number }
  | { readonly perSecond: number }
);

const method = "kms.KmsService/Sign";

function gauge(name: string, value: number, labels: Record<string, string> = {}): Series {
  return { name, labels, value };
}

function counter(name: string, perSecond: number, labels: Record<string, string> = {}): Series {
  return { name, labels, perSecond };
}

function bucket(name: string, le: string, perSecond: number, labels: Record<string, string> = {}): Series {
  return { name: `${name}_bucket`, labels: { ...labels, le }, perSecond };
}

function failures(reason: string, perSecond: number): Series {
  return { name: "qsp_call_failures_total", labels: { method, reason }, perSecond };
}

function calls(code: string, perSecond: number, of = method): Series {
  return { name: "qsp_calls_total", labels: { method: of, code }, perSecond };
}

/** The time series of a healthy server. */
export const healthySeries: readonly Series[] = [
  { name: "up", value: 1 },
  // The clock of promtool starts at 0.
  { name: "process_start_time_seconds", value: 0 },
  { name: "process_resident_memory_bytes", value: 300e6 },
  { name: "process_open_fds", value: 100 },
  { name: "process_max_fds", value: 65_536 },
  { name: "nodejs_eventloop_lag_p99_seconds", value: 0.02 },
  { name: "qsp_buffered_bytes", value: 1e6 },
  { name: "qsp_crypto_provider_info", labels: { provider: "openssl", version: "3.5.8", cpu: "" }, value: 1 },
  { name: "qsp_build_info", labels: { version: "0.1.0", commit: "0123456789ab", node: "26.10.0" }, value: 1 },
  { name: "qsp_trace_spans_total", labels: { outcome: "exported" }, perSecond: 20 },
  { name: "qsp_trace_spans_total", labels: { outcome: "failed" }, perSecond: 0 },
  { name: "qsp_crypto_queue_wait_seconds", value: 0.01 },
  { name: "qsp_crypto_queue_slow_wait_seconds", value: 0.1 },
  { name: "qsp_lane_waiting", labels: { lane: "passwords" }, value: 1 },
  { name: "qsp_lane_refused_total", labels: { lane: "quick" }, perSecond: 0 },
  { name: "qsp_responses_dropped_total", perSecond: 0 },
  { name: "qsp_refusals_unrecorded_total", perSecond: 0 },
  { name: "qsp_overdue_work", labels: { work: "kms_destroy" }, value: 0 },
  { name: "qsp_background_failures_total", labels: { work: "sign_checkpoint" }, perSecond: 0 },
  { name: "qsp_store_writable", value: 1 },
  { name: "qsp_uncaught_errors_total", perSecond: 0 },
  calls("OK", 100),
  calls("InvalidArgument", 5),
  calls("Unauthenticated", 0.005, "pqc.PqcService/IssueToken"),
  failures("KEY_NOT_FOUND", 5),
  bucket("qsp_call_duration_seconds", "0.01", 100, { method }),
  bucket("qsp_call_duration_seconds", "+Inf", 100, { method }),
  // A half-hour watch is not a slow call.
  bucket("qsp_call_duration_seconds", "10", 0, { method: "blockchain.BlockchainService/WatchBlocks" }),
  bucket("qsp_call_duration_seconds", "+Inf", 50, { method: "blockchain.BlockchainService/WatchBlocks" }),
  bucket("qsp_store_commit_seconds", "0.01", 50),
  bucket("qsp_store_commit_seconds", "+Inf", 50),
];

/** For each alert, the time series of a server with that problem. They replace healthy series with the same name. */
export const troubles: Readonly<Record<string, readonly Series[]>> = {
  QspServerDown: [{ name: "up", value: 0 }],
  QspAllServersDown: [{ name: "up", value: 0 }],
  // It changes with each scrape.
  QspServerRestarts: [{ name: "process_start_time_seconds", perSecond: 1 }],
  QspMemoryHigh: [{ name: "process_resident_memory_bytes", value: 3.5e9 }],
  QspRequestMemoryHigh: [{ name: "qsp_buffered_bytes", value: 250e6 }],
  QspFilesNearLimit: [gauge("process_open_fds", 900), gauge("process_max_fds", 1024)],
  QspEventLoopSlow: [{ name: "nodejs_eventloop_lag_p99_seconds", value: 0.8 }],
  QspProvidersDiffer: [
    gauge("qsp_crypto_provider_info", 1, { provider: "native", version: "5.12.0", cpu: "AVX2" }),
    gauge("qsp_crypto_provider_info", 1, { provider: "openssl", version: "3.5.8", cpu: "" }),
  ],
  QspInternalErrors: [calls("Internal", 0.1)],
  QspUncaughtErrors: [{ name: "qsp_uncaught_errors_total", perSecond: 0.1 }],
  QspUnavailable: [calls("Unavailable", 2)],
  QspStoreNotWritable: [{ name: "qsp_store_writable", value: 0 }],
  QspStoreFull: [calls("OK", 10), calls("ResourceExhausted", 2), failures("STORE_FULL", 2)],
  QspCallsSlow: [
    bucket("qsp_call_duration_seconds", "2.5", 90, { method }),
    bucket("qsp_call_duration_seconds", "5", 100, { method }),
    bucket("qsp_call_duration_seconds", "+Inf", 100, { method }),
  ],
  QspCallsRefused: [calls("OK", 10), calls("ResourceExhausted", 2), failures("QUOTA_EXCEEDED", 2)],
  QspLoginsRefused: [calls("Unauthenticated", 1, "pqc.PqcService/IssueToken")],
  QspTokensRefused: [calls("OK", 10), calls("Unauthenticated", 3)],
  QspVersionsDiffer: ["0123456789ab", "ba9876543210"].map((commit) =>
    gauge("qsp_build_info", 1, { version: "0.1.0", commit, node: "26.10.0" }),
  ),
  QspTracesLost: [{ name: "qsp_trace_spans_total", labels: { outcome: "failed" }, perSecond: 5 }],
  QspRefusalsUnrecorded: [{ name: "qsp_refusals_unrecorded_total", perSecond: 1 }],
  QspResponsesDropped: [{ name: "qsp_responses_dropped_total", perSecond: 1 }],
  QspQueueLong: [{ name: "qsp_crypto_queue_wait_seconds", value: 0.9 }],
  QspSlowQueueLong: [{ name: "qsp_crypto_queue_slow_wait_seconds", value: 4 }],
  QspWorkRefused: [{ name: "qsp_lane_refused_total", labels: { lane: "slow" }, perSecond: 1 }],
  QspPasswordsWaiting: [{ name: "qsp_lane_waiting", labels: { lane: "passwords" }, value: 50 }],
  QspStoreSlow: [
    bucket("qsp_store_commit_seconds", "0.5", 40),
    bucket("qsp_store_commit_seconds", "1", 50),
    bucket("qsp_store_commit_seconds", "+Inf", 50),
  ],
  QspWorkOverdue: [{ name: "qsp_overdue_work", labels: { work: "kms_destroy" }, value: 3 }],
  // One alert for each server.
  QspBackgroundFails: ["sign_checkpoint", "kms_schedule"].map((work) =>
    counter("qsp_background_failures_total", 1, { work }),
  ),
};

/** The time series of a server that has one problem and is otherwise healthy. */
export function seriesIn(alert: string): Series[] {
  const changed = troubles[alert] ?? [];
  const names = new Set(changed.map(({ name }) => name));
  return [...healthySeries.filter(({ name }) => !names.has(name)), ...changed];
}

/** Formats a series in Prometheus notation. */
export function nameSeries({ name, labels = {} }: Series, added: Readonly<Record<string, string>>): string {
  const all = Object.entries({ ...labels, ...added });
  return `${name}{${all.map(([label, value]) => `${label}=${JSON.stringify(value)}`)}}`;
}

/** Lists the metrics that an expression selects. */
export function listMetrics(expr: string): string[] {
  const selected = expr.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').matchAll(/([a-zA-Z_:][\w:]*)\s*\{/g);
  return [...new Set([...selected].map(([, name = ""]) => name))];
}

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}
const dashboard: { readonly uid: string; readonly panels: readonly Panel[] } = JSON.parse(
  readDeployed("grafana/dashboard.json"),
);
/** The dashboard panels that query metrics. */
export const panels = dashboard.panels.filter(({ type }) => type !== "row");
