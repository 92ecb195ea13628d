/** Checks the alerts, the dashboard and the Prometheus configuration with promtool. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { isMissing, run } from "../interop/tools.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { healthySeries, nameSeries, panels, readAlertRules, type Series, seriesIn } from "./alert-rules.ts";
import { deployFolder, readDeployed } from "./unit-file.ts";

const rules = readAlertRules();
const noPromtool = isMissing("promtool");

/** A promtool test: a server's time series, and how many alerts of a name fire after 90 minutes. */
function describeTest(series: readonly Series[], selector: string, count: number) {
  return {
    interval: "1m",
    input_series: series.map((one) => ({
      series: nameSeries(one, { job: "qsp", instance: "qsp-1:8080" }),
      values: "value" in one ? `${one.value}+0x100` : `0+${one.perSecond * 60}x100`,
    })),
    promql_expr_test: [expectFiring(90, selector, count)],
  };
}

const rulesFile = join(deployFolder, "prometheus/alerts.yaml");

/** Runs tests of the rules, which must succeed. */
async function expectSuccess(tests: readonly unknown[]): Promise<void> {
  const path = join(makeTemporaryDirectory(), "tests.yaml");
  writeFileSync(path, stringify({ rule_files: [rulesFile], evaluation_interval: "1m", tests }));
  const { stdout, stderr, code } = await run("promtool", ["test", "rules", path]);
  expect([code, stdout + stderr]).toEqual([0, expect.stringContaining("SUCCESS")]);
}

/** A number of firing alerts at a time. */
function expectFiring(atMinute: string | number, selector: string, value: number) {
  const expr = `count(ALERTS{alertstate="firing"${selector}}) or vector(0)`;
  return { eval_time: `${atMinute}m`, expr, exp_samples: [{ labels: "{}", value }] };
}

describe.skipIf(noPromtool)(`promtool${noPromtool ? " (needs promtool)" : ""}`, () => {
  it("accepts the rules and the configuration", async () => {
    expect(await run("promtool", ["check", "rules", rulesFile])).toMatchObject({ code: 0 });
    const config = parse(readDeployed("prometheus/prometheus.yaml"));
    expect(config.rule_files).toEqual(["alerts.yaml"]);
    const path = join(deployFolder, "prometheus/prometheus.yaml");
    expect(await run("promtool", ["check", "config", "--syntax-only", path])).toMatchObject({ code: 0 });
  });

  it("fires no alert for a healthy server", () => expectSuccess([describeTest(healthySeries, "", 0)]));

  it("fires each alert for its problem", { timeout: 120_000 }, () =>
    expectSuccess(rules.map(({ alert }) => describeTest(seriesIn(alert), `, alertname="${alert}"`, 1))),
  );

  it("fires one critical alert for a full disk, and none about limits", () =>
    expectSuccess([
      describeTest(seriesIn("QspStoreFull"), ', alertname="QspCallsRefused"', 0),
      describeTest(seriesIn("QspStoreFull"), ', severity="critical"', 1),
    ]));

  it("parses the dashboard's expressions", async () => {
    const path = join(makeTemporaryDirectory(), "panels.yaml");
    const asRules = panels.flatMap(({ targets = [] }) =>
      targets.map(({ expr }, index) => ({
        record: `panel_${index}`,
        expr: expr.replaceAll("$__rate_interval", "5m"),
      })),
    );
    writeFileSync(path, stringify({ groups: [{ name: "panels", rules: asRules }] }));
    const { code, stderr } = await run("promtool", ["check", "rules", "--lint=none", path]);
    expect([code, stderr]).toEqual([0, expect.not.stringContaining("FAILED")]);
  });
});

describe.skipIf(noPromtool)(`an alert about any event${noPromtool ? " (needs promtool)" : ""}`, () => {
  const internal =
    'qsp_calls_total{job="qsp",instance="qsp-1:8080",method="kms.KmsService/Sign",code="DataLoss"}';
  const full =
    'qsp_call_failures_total{job="qsp",instance="qsp-1:8080",method="kms.KmsService/Sign",reason="STORE_FULL"}';
  const start = 'process_start_time_seconds{job="qsp",instance="qsp-1:8080"}';
  /** The values of each minute, and how many alerts fire in some minutes. */
  const histories = [
    {
      name: "fires for the first event, and no longer after ten minutes",
      started: "0x60",
      events: "_x29 stale 1x30",
      firing: { 29: 0, 31: 1, 34: 1, 42: 0 },
    },
    {
      name: "fires for the first event after a restart, although an earlier process had one too",
      started: "0x29 1800x30",
      events: "1x29 stale _ 1x28",
      firing: { 29: 0, 31: 0, 32: 1, 36: 1, 43: 0 },
    },
    {
      name: "fires only once for an event before a gap in Prometheus's data",
      started: "0x14 stale _x10 0x33",
      events: "1x14 stale _x10 1x33",
      firing: { 14: 0, 27: 0, 32: 0, 37: 0 },
    },
  ];
  it.each([
    ["QspInternalErrors", internal],
    ["QspStoreFull", full],
  ])("fires for the first one: %s", { timeout: 120_000 }, async (alert, events) => {
    const tests = histories.map((history) => ({
      name: history.name,
      interval: "1m",
      input_series: [
        { series: start, values: history.started },
        { series: events, values: history.events },
      ],
      promql_expr_test: Object.entries(history.firing).map(([minute, value]) =>
        expectFiring(minute, `, alertname="${alert}"`, value),
      ),
    }));
    await expectSuccess(tests);
  });
});
