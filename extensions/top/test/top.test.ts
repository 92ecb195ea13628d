/** `qsp top` derives a server's activity from its metrics. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { parseMetrics } from "../../../src/client/prometheus-text.ts";
import { compareSnapshots } from "../../../src/client/server-activity.ts";
import { runAtTerminal } from "../../../test/cli/operator/command-line.ts";
import { qsp, timeout, useServer } from "../../../test/cli/qsp.ts";
import { main } from "../../../test/support/program.ts";
import { drawActivity } from "../draw.ts";

const server = useServer();

const before = `# TYPE qsp_calls_total counter
qsp_calls_total{method="kms.KmsService/Sign",code="OK"} 100
qsp_calls_total{method="kms.KmsService/Sign",code="NotFound"} 4
qsp_calls_running{method="kms.KmsService/Sign"} 1
qsp_call_duration_seconds_bucket{le="0.001",method="kms.KmsService/Sign"} 100
qsp_call_duration_seconds_bucket{le="0.002",method="kms.KmsService/Sign"} 100
qsp_call_duration_seconds_bucket{le="+Inf",method="kms.KmsService/Sign"} 100
process_cpu_seconds_total 10
qsp_log_entries{log="audit"} 100
`;
const after = `qsp_calls_total{method="kms.KmsService/Sign",code="OK"} 300
qsp_calls_total{method="kms.KmsService/Sign",code="NotFound"} 14
qsp_calls_total{method="kms.KmsService/GetKey",code="OK"} 2
qsp_calls_running{method="kms.KmsService/Sign"} 3
qsp_call_duration_seconds_bucket{le="0.001",method="kms.KmsService/Sign"} 200
qsp_call_duration_seconds_bucket{le="0.002",method="kms.KmsService/Sign"} 295
qsp_call_duration_seconds_bucket{le="+Inf",method="kms.KmsService/Sign"} 300
process_cpu_seconds_total 11
process_resident_memory_bytes 104857600
qsp_crypto_queue_depth 5
qsp_crypto_queue_wait_seconds 0.25
qsp_lane_waiting{lane="quick"} 2
qsp_lane_refused_total{lane="quick"} 10
qsp_log_entries{log="audit"} 120
`;

const snapshots = (first: string, second: string) =>
  compareSnapshots({ atMs: 0, samples: parseMetrics(first) }, { atMs: 2000, samples: parseMetrics(second) });

describe("the activity between two readings", () => {
  it("has rates, durations and queue lengths", () => {
    const activity = snapshots(before, after);
    expect(activity).toMatchObject({
      callsPerSecond: 106,
      inFlight: 3,
      failures: { NotFound: 5 },
      queue: { depth: 5, waitMs: 250, waiting: { quick: 2 }, refusedPerSecond: 5 },
      auditPerSecond: 10,
      memoryBytes: 104_857_600,
      cpuCores: 0.5,
    });
    expect(activity.calls.map(({ call }) => call)).toEqual(["kms.KmsService/Sign", "kms.KmsService/GetKey"]);
    expect(activity.calls[0]).toMatchObject({ callsPerSecond: 105, failuresPerSecond: 5, calls: 314 });
    expect(activity.latency.p50Ms).toBeCloseTo(1);
    expect(activity.latency.p95Ms).toBeCloseTo(1.947, 2);
    expect(activity.latency.p99Ms).toBe(Infinity);
  });

  it("counts from the restart if the server was restarted", () => {
    expect(snapshots(after, before)).toMatchObject({ callsPerSecond: 52, cpuCores: 5 });
  });

  it("has no durations without calls and requires no metric", () => {
    const activity = snapshots("", "");
    expect(activity).toMatchObject({ callsPerSecond: 0, calls: [], auditPerSecond: undefined });
    expect(drawActivity("http://x", activity, { columns: 80, rows: 24 })).toHaveLength(7);
  });

  it.each([
    { columns: 40, rows: 5 },
    { columns: 80, rows: 8 },
    { columns: 200, rows: 50 },
  ])("fits into $columns columns and $rows rows and removes control characters", (size) => {
    const lines = drawActivity("http://x", snapshots(before, after.replaceAll("GetKey", "\u001b[2J")), size);
    expect(lines.length).toBeLessThanOrEqual(size.rows);
    expect(lines.filter(({ text }) => text.length > size.columns || text.includes("\u001b"))).toEqual([]);
  });
});

describe("qsp top", { timeout }, () => {
  it("prints the calls of one interval as text and as JSON with --once", async () => {
    const pqc = server.client(PqcService);
    const place = server.place();
    const calling = setInterval(() => void pqc.signData({ data: Buffer.from("x") }).catch(() => {}), 50);
    try {
      const text = await qsp(["top", "--once", "--interval", "1"], place);
      expect(text).toMatchObject({ code: 0, stderr: "" });
      expect(text.stdout).toMatch(/^pqc\.PqcService\/SignData +[1-9]\d*\.\d /m);
      expect(text.stdout).not.toContain("\u001b");
      const { stdout } = await qsp(["top", "--once", "--interval", "1", "--json"], place);
      const { calls, memoryBytes } = JSON.parse(stdout);
      expect(memoryBytes).toBeGreaterThan(1_000_000);
      expect(calls[0]).toMatchObject({ call: "pqc.PqcService/SignData", failuresPerSecond: 0 });
      expect(calls[0].callsPerSecond).toBeGreaterThan(1);
      expect(calls[0].latency.p50Ms).toBeGreaterThan(0);
    } finally {
      clearInterval(calling);
    }
  });

  it.each([
    [["--interval", "0"], 2, "--interval"],
    [["--url", "http://127.0.0.1:1"], 4, "nothing listens"],
  ])("exits with one sentence for %j", async (args, code, named) => {
    expect(await qsp(["top", "--once", ...args], server.place())).toMatchObject({
      code,
      stdout: "",
      stderr: expect.stringContaining(named),
    });
  });
});

describe("qsp top at a terminal", { timeout }, () => {
  /** Runs it between two `stty -g` calls, at a fixed size. */
  const run = (url: string) => {
    const command = `tty; stty cols 60 rows 12; stty -g; '${process.execPath}' '${main}' top --interval 1 --url ${url}; echo "code $?"; stty -g`;
    return runAtTerminal("sh", ["-c", command]);
  };
  const entered = "\u001b[?1049h";
  const left = "\u001b[?25h\u001b[?1049l";

  /** Requires that stty prints the same settings before and after. */
  function requireRestored(text: string): void {
    const [, before, , after] = /^[^\n]*\n([^\r\n]+)\r?\n([\s\S]*)code \d+\r?\n([^\r\n]+)/.exec(text) ?? [];
    expect(before).toMatch(/^[0-9a-f]+(:[0-9a-f]+)+$/);
    expect(after).toBe(before);
    expect(text.indexOf(left)).toBeGreaterThan(text.indexOf(entered));
  }

  it("draws in place, follows the terminal size and restores the terminal when q is pressed", async () => {
    const terminal = run(server.url);
    await terminal.typeAfter("CALLS/S", "");
    const device = /\/dev\/\S+/.exec(terminal.shown())?.[0] ?? "";
    // The header is cut off at 60 columns.
    expect(terminal.shown()).not.toContain("TOTAL");
    execFileSync("stty", ["-F", device, "cols", "110", "rows", "20"]);
    await terminal.typeAfter("TOTAL", "q");
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown()).toContain(entered);
    expect(terminal.shown()).toContain("code 0");
    requireRestored(terminal.shown());
  });

  it("restores the terminal when Ctrl-C is pressed", async () => {
    const terminal = run(server.url);
    await terminal.typeAfter("reading for", "\u0003");
    await terminal.ended;
    expect(terminal.shown()).toContain("code 130");
    requireRestored(terminal.shown());
  });
});

describe("qsp top on a server that requires tokens", { timeout }, () => {
  const guarded = useServer({ QSP_METRICS: "token" });

  it("names the role that it needs", async () => {
    const stderr = /needs the token of an auditor or admin \(HTTP 401\); log in with qsp login/;
    const run = await qsp(["top", "--once"], guarded.place());
    expect(run).toMatchObject({ code: 3, stderr: expect.stringMatching(stderr) });
  });
});
