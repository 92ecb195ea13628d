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
    promql_expr_test: [
      {
        eval_time: "90m",
        expr: `count(ALERTS{alertstate="firing"${selector}}) or vector(0)`,
        exp_samples: [{ labels: "{}", value: count }],
      },
    ],
  };
}

const rulesFile = join(deployFolder, "prometheus/alerts.yaml");

const testRules = (tests: readonly unknown[]) => {
  const path = join(makeTemporaryDirectory(), "tests.yaml");
  writeFileSync(path, stringify({ rule_files: [rulesFile], evaluation_interval: "1m", tests }));
  return run("promtool", ["test", "rules", path]);
};

describe.skipIf(noPromtool)(`promtool${noPromtool ? " (needs promtool)" : ""}`, () => {
  it("accepts the rules and the configuration", async () => {
    expect(await run("promtool", ["check", "rules", rulesFile])).toMatchObject({ code: 0 });
    const config = parse(readDeployed("prometheus/prometheus.yaml"));
    expect(config.rule_files).toEqual(["alerts.yaml"]);
    const checked = await run("promtool", [
      "check",
      "config",
      "--syntax-only",
      join(deployFolder, "prometheus/prometheus.yaml"),
    ]);
    expect(checked).toMatchObject({ code: 0 });
  });

  it("fires no alert for a healthy server", async () => {
    const { stdout, stderr, code } = await testRules([describeTest(healthySeries, "", 0)]);
    expect([code, stdout + stderr]).toEqual([0, expect.stringContaining("SUCCESS")]);
  });

  it("fires each alert for its problem", { timeout: 120_000 }, async () => {
    const tests = rules.map(({ alert }) => describeTest(seriesIn(alert), `, alertname="${alert}"`, 1));
    const { stdout, stderr, code } = await testRules(tests);
    expect([code, stdout + stderr]).toEqual([0, expect.stringContaining("SUCCESS")]);
  });

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

describe.skipIf(noPromtool)(`a full disk${noPromtool ? " (needs promtool)" : ""}`, () => {
  it("causes one critical alert, and none about limits", async () => {
    const tests = [
      describeTest(seriesIn("QspStoreFull"), ', alertname="QspCallsRefused"', 0),
      describeTest(seriesIn("QspStoreFull"), ', severity="critical"', 1),
    ];
    const { stdout, stderr, code } = await testRules(tests);
    expect([code, stdout + stderr]).toEqual([0, expect.stringContaining("SUCCESS")]);
  });
});
