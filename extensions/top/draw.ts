/** Renders server activity as lines of text. */
import type { Style } from "../../src/cli/output/colors.ts";
import { harmless } from "../../src/cli/output/output.ts";
import type { Activity, CallActivity } from "../../src/client/server-activity.ts";

/** A line and its style. */
export interface Line {
  readonly text: string;
  readonly style?: Style;
}

/** Terminal size in characters. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** Renders the server and its busiest calls, as many as fit. */
export function drawActivity(url: string, activity: Activity, { columns, rows }: Size): Line[] {
  const head: Line[] = [
    { text: `${url}  ${describeTime(activity)}`, style: "heading" },
    { text: describeCalls(activity) },
    { text: describeQueue(activity) },
    { text: describeFailures(activity), ...(hasFailures(activity) && { style: "bad" as const }) },
    { text: describeProcess(activity) },
    { text: "" },
    { text: drawRow(headers, columns), style: "heading" },
  ];
  const room = Math.max(1, rows - head.length);
  const calls = activity.calls.slice(0, room).map((call): Line => {
    const text = drawRow(toCells(call), columns);
    if (call.failuresPerSecond > 0) return { text, style: "warning" };
    return call.callsPerSecond === 0 && call.inFlight === 0 ? { text, style: "quiet" } : { text };
  });
  // Call names and codes come from an untrusted server.
  return [...head, ...calls]
    .slice(0, rows)
    .map(({ text, ...rest }) => ({ ...rest, text: harmless(text).slice(0, columns) }));
}

/** Renders one line for a log. */
export function summarize(activity: Activity): string {
  const parts = [describeCalls(activity), describeQueue(activity), describeFailures(activity)];
  return harmless([...parts, describeProcess(activity)].join(" | "));
}

const headers = ["CALL", "CALLS/S", "P50", "P95", "P99", "IN FLIGHT", "FAILED/S", "TOTAL"];
/** Width of the columns after the call name. */
const widths = [9, 8, 8, 8, 11, 10, 11];
const leastNameWidth = 20;

function toCells({
  call,
  callsPerSecond,
  latency,
  inFlight,
  failuresPerSecond,
  calls,
}: CallActivity): string[] {
  return [
    call,
    formatRate(callsPerSecond),
    formatMs(latency.p50Ms),
    formatMs(latency.p95Ms),
    formatMs(latency.p99Ms),
    String(inFlight),
    formatRate(failuresPerSecond),
    calls.toLocaleString("en"),
  ];
}

function drawRow([name = "", ...cells]: readonly string[], columns: number): string {
  const nameWidth = Math.max(
    leastNameWidth,
    Math.min(60, columns - widths.reduce((sum, width) => sum + width)),
  );
  const shown =
    name.length > nameWidth ? `…${name.slice(name.length - nameWidth + 1)}` : name.padEnd(nameWidth);
  return shown + cells.map((cell, i) => cell.padStart(widths[i] ?? 0)).join("");
}

function describeTime({ seconds }: Activity): string {
  return `last ${formatNumber(seconds, 1)} s`;
}

function describeCalls({ callsPerSecond, inFlight, latency: { p50Ms, p95Ms, p99Ms } }: Activity): string {
  return `calls ${formatRate(callsPerSecond)}/s, ${inFlight} in flight, p50 ${formatMs(p50Ms)}, p95 ${formatMs(p95Ms)}, p99 ${formatMs(p99Ms)}`;
}

function describeQueue({ queue, auditPerSecond }: Activity): string {
  const lanes = Object.entries(queue.waiting).map(([lane, waiting]) => `${lane} ${waiting}`);
  const waiting = lanes.length === 0 ? "" : ` (waiting: ${lanes.join(", ")})`;
  return `crypto queue ${queue.depth ?? "-"}${waiting}, wait ${formatMs(queue.waitMs)}, audit ${formatRate(auditPerSecond)}/s`;
}

function hasFailures({ failures, queue }: Activity): boolean {
  return Object.keys(failures).length > 0 || queue.refusedPerSecond > 0;
}

function describeFailures({ failures, queue }: Activity): string {
  const codes = Object.entries(failures)
    .sort(([, a], [, b]) => b - a)
    .map(([code, perSecond]) => `${code} ${formatRate(perSecond)}/s`);
  return `failed: ${codes.join(", ") || "none"}; refused by the queue: ${formatRate(queue.refusedPerSecond)}/s`;
}

function describeProcess({ memoryBytes, cpuCores, eventLoopLagMs }: Activity): string {
  const memory = memoryBytes === undefined ? "-" : `${formatNumber(memoryBytes / 1024 / 1024, 0)} MiB`;
  const cpu = cpuCores === undefined ? "-" : `${formatNumber(cpuCores * 100, 0)} % of a core`;
  return `memory ${memory}, CPU ${cpu}, event loop lag p99 ${formatMs(eventLoopLagMs)}`;
}

function formatRate(perSecond: number | undefined): string {
  return perSecond === undefined ? "-" : formatNumber(perSecond, perSecond < 100 ? 1 : 0);
}

/** "0.43 ms", "12 ms", "1.2 s". The last histogram bucket ends at 30 seconds. */
function formatMs(ms: number | undefined): string {
  if (ms === undefined) return "-";
  if (ms === Infinity) return "> 30 s";
  if (ms >= 1000) return `${formatNumber(ms / 1000, 1)} s`;
  return `${formatNumber(ms, ms < 10 ? 2 : 0)} ms`;
}

function formatNumber(value: number, digits: number): string {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
