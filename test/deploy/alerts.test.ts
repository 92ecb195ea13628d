import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { isMissing, run } from "../interop/tools.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";
import {
  healthySeries,
  listMetrics,
  nameSeries,
  readAlertRules,
  type Series,
  seriesIn,
  troubles,
} from "./alert-rules.ts";
import { deployFolder, readDeployed } from "./unit-file.ts";

const rules = readAlertRules();
const noPromtool = isMissing("promtool");
const runbook = readFileSync(join(deployFolder, "../docs/runbook.md"), "utf8");

/** The panels of the dashboard that show something. */
interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}
const dashboard: { readonly uid: string; readonly panels: readonly Panel[] } = JSON.parse(
  readDeployed("grafana/dashboard.json"),
);
const panels = dashboard.panels.filter(({ type }) => type !== "row");
const expressions = [
  ...rules.map(({ alert, expr }) => ({ user: `the alert ${alert}`, expr })),
  ...panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ user: `the panel ${title}`, expr })),
  ),
];

const methods = (await loadPackages()).flatMap(({ files }) =>
  files.flatMap((file) => file.services.flatMap((service) => service.methods)),
);

describe("an expression of an alert or a panel", () => {
  let server: RunningServer;
  let exposed: ReadonlySet<string>;
  beforeAll(async () => {
    server = await startServer({ dataDir: makeTemporaryDirectory(afterAll) });
    await fetch(`${server.url}/api/hello`);
    // The series of failures begin with the first one.
    await fetch(`${server.url}/api/kms/key/no-such-key`);
    const text = await (await fetch(`${server.url}/metrics`)).text();
    const samples = [...text.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{| )/gm)].map(([, name = ""]) => name);
    // Prometheus adds it to each target.
    exposed = new Set([...samples, "up"]);
  });
  afterAll(() => server?.stop());

  it.each(expressions)("uses only metrics that a server exposes, and of servers only: $user", ({ expr }) => {
    const metrics = listMetrics(expr);
    expect(metrics.length).toBeGreaterThan(0);
    expect(metrics.filter((name) => !exposed.has(name))).toEqual([]);
    const unselected = expr
      .replaceAll(/[a-zA-Z_:][\w:]*\s*\{[^}]*\}/g, "")
      .match(/\b(?:qsp|process|nodejs)_\w+/g);
    expect(unselected ?? []).toEqual([]);
    for (const [, labels] of expr.matchAll(/\{([^}]*)\}/g)) expect(labels).toContain('job="qsp"');
  });

  it.each(expressions)("uses only codes of gRPC: $user", ({ expr }) => {
    for (const [, codes = ""] of expr.matchAll(/code[!=]~?"([^"]*)"/g))
      for (const code of codes.split("|")) expect(["OK", ...Object.keys(Code)]).toContain(code);
  });
});

describe("the alerts", () => {
  it("count the log-ins of users and of clients", () => {
    const { expr = "" } = rules.find(({ alert }) => alert === "QspLoginsRefused") ?? {};
    const [, pattern = ""] = /method=~"([^"]+)"/.exec(expr) ?? [];
    const counted = new RegExp(`^(?:${pattern.replaceAll("\\\\", "\\")})$`);
    const names = methods.map((method) => `${method.parent.typeName}/${method.name}`);
    const logIns = names.filter((name) => name.endsWith("/IssueToken"));
    expect(logIns).toContain("pqc.TokenService/IssueToken");
    expect(names.filter((name) => counted.test(name))).toEqual(logIns);
  });

  it("leave streams, and nothing else, out of slow calls", () => {
    const { expr = "" } = rules.find(({ alert }) => alert === "QspCallsSlow") ?? {};
    const [, pattern = ""] = /method!~"([^"]+)"/.exec(expr) ?? [];
    const left = methods.filter(({ parent, name }) =>
      new RegExp(`^(?:${pattern})$`).test(`${parent.typeName}/${name}`),
    );
    const streams = methods.filter(({ methodKind }) => methodKind !== "unary");
    expect(left.map(({ name }) => name).sort()).toEqual(streams.map(({ name }) => name).sort());
  });

  it.each(rules)(
    "say how bad it is, and where to read what to do: $alert",
    ({ alert, labels, annotations }) => {
      expect(labels.severity).toMatch(/^(critical|warning)$/);
      expect(annotations.summary).toMatch(/\.$/);
      expect(annotations.runbook_url).toMatch(new RegExp(`/docs/runbook\\.md#${alert.toLowerCase()}$`));
      const [, section = ""] =
        new RegExp(`^## ${alert}\\n\\n(.*?)(?=^## |$(?![\\s\\S]))`, "ms").exec(runbook) ?? [];
      expect(section).toMatch(/^\*\*What it means:\*\* .+\n\n\*\*What to do:\*\*\n\n1\. ./);
    },
  );

  it("are all that the runbook has", () => {
    const sections = [...runbook.matchAll(/^## (Qsp\w+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(rules.map(({ alert }) => alert));
  });

  it("each have a trouble in the tests", () => {
    expect(Object.keys(troubles).sort()).toEqual(rules.map(({ alert }) => alert).sort());
  });
});

/** A test of promtool: series of a server, and how many alerts of a name fire after 90 minutes. */
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

  it("sees no alert for a server without trouble", async () => {
    const { stdout, stderr, code } = await testRules([describeTest(healthySeries, "", 0)]);
    expect([code, stdout + stderr]).toEqual([0, expect.stringContaining("SUCCESS")]);
  });

  it("sees each alert fire in its trouble", { timeout: 120_000 }, async () => {
    const tests = rules.map(({ alert }) => describeTest(seriesIn(alert), `, alertname="${alert}"`, 1));
    const { stdout, stderr, code } = await testRules(tests);
    expect([code, stdout + stderr]).toEqual([0, expect.stringContaining("SUCCESS")]);
  });
});

describe.skipIf(noPromtool)(`a full disk${noPromtool ? " (needs promtool)" : ""}`, () => {
  it("is one alert, critical, and not also one about limits", async () => {
    const tests = [
      describeTest(seriesIn("QspStoreFull"), ', alertname="QspCallsRefused"', 0),
      describeTest(seriesIn("QspStoreFull"), ', severity="critical"', 1),
    ];
    const { stdout, stderr, code } = await testRules(tests);
    expect([code, stdout + stderr]).toEqual([0, expect.stringContaining("SUCCESS")]);
  });
});

describe("the dashboard of Grafana", () => {
  it("has a title and a unit for each panel, and each panel has its own place", () => {
    const titles = panels.map(({ title }) => title);
    expect(new Set(titles).size).toBe(titles.length);
    expect(panels.length).toBeGreaterThan(10);
    for (const { targets = [] } of panels) expect(targets.length).toBeGreaterThan(0);
  });

  it.skipIf(noPromtool)("has expressions that Prometheus can parse", async () => {
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
