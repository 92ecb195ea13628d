import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";
import { listMetrics, panels, readAlertRules, troubles } from "./alert-rules.ts";
import { deployFolder } from "./unit-file.ts";

const rules = readAlertRules();
const runbook = readFileSync(join(deployFolder, "../docs/runbook.md"), "utf8");

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
    // Failure series do not exist until the first failure.
    await fetch(`${server.url}/api/kms/key/no-such-key`);
    const text = await (await fetch(`${server.url}/metrics`)).text();
    const samples = [...text.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{| )/gm)].map(([, name = ""]) => name);
    // Prometheus adds it to each target.
    exposed = new Set([...samples, "up"]);
  });
  afterAll(() => server?.stop());

  it.each(expressions)(
    "uses only metrics that a server exposes, and selects only servers: $user",
    ({ expr }) => {
      const metrics = listMetrics(expr);
      expect(metrics.length).toBeGreaterThan(0);
      expect(metrics.filter((name) => !exposed.has(name))).toEqual([]);
      const unselected = expr
        .replaceAll(/[a-zA-Z_:][\w:]*\s*\{[^}]*\}/g, "")
        .match(/\b(?:qsp|process|nodejs)_\w+/g);
      expect(unselected ?? []).toEqual([]);
      for (const [, labels] of expr.matchAll(/\{([^}]*)\}/g)) expect(labels).toContain('job="qsp"');
    },
  );

  it.each(expressions)("uses only gRPC codes: $user", ({ expr }) => {
    for (const [, codes = ""] of expr.matchAll(/code[!=]~?"([^"]*)"/g))
      for (const code of codes.split("|")) expect(["OK", ...Object.keys(Code)]).toContain(code);
  });
});

describe("the alerts", () => {
  it("count the logins of users and clients", () => {
    const { expr = "" } = rules.find(({ alert }) => alert === "QspLoginsRefused") ?? {};
    const [, pattern = ""] = /method=~"([^"]+)"/.exec(expr) ?? [];
    const counted = new RegExp(`^(?:${pattern.replaceAll("\\\\", "\\")})$`);
    const names = methods.map((method) => `${method.parent.typeName}/${method.name}`);
    const logIns = names.filter((name) => name.endsWith("/IssueToken"));
    expect(logIns).toContain("pqc.TokenService/IssueToken");
    expect(names.filter((name) => counted.test(name))).toEqual(logIns);
  });

  it("exclude only streams from slow calls", () => {
    const { expr = "" } = rules.find(({ alert }) => alert === "QspCallsSlow") ?? {};
    const [, pattern = ""] = /method!~"([^"]+)"/.exec(expr) ?? [];
    const left = methods.filter(({ parent, name }) =>
      new RegExp(`^(?:${pattern})$`).test(`${parent.typeName}/${name}`),
    );
    const streams = methods.filter(({ methodKind }) => methodKind !== "unary");
    expect(left.map(({ name }) => name).sort()).toEqual(streams.map(({ name }) => name).sort());
  });

  it.each(rules)("state their severity and link to the runbook: $alert", ({ alert, labels, annotations }) => {
    expect(labels.severity).toMatch(/^(critical|warning)$/);
    expect(annotations.summary).toMatch(/\.$/);
    expect(annotations.runbook_url).toMatch(new RegExp(`/docs/runbook\\.md#${alert.toLowerCase()}$`));
    const [, section = ""] =
      new RegExp(`^## ${alert}\\n\\n(.*?)(?=^## |$(?![\\s\\S]))`, "ms").exec(runbook) ?? [];
    expect(section).toMatch(/^\*\*What it means:\*\* .+\n\n\*\*What to do:\*\*\n\n1\. ./);
  });

  it("match the runbook", () => {
    const sections = [...runbook.matchAll(/^## (Qsp\w+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(rules.map(({ alert }) => alert));
  });

  it("each have a test case", () => {
    expect(Object.keys(troubles).sort()).toEqual(rules.map(({ alert }) => alert).sort());
  });
});

describe("the Grafana dashboard", () => {
  it("has a title and a unit for each panel, and a separate position for each", () => {
    const titles = panels.map(({ title }) => title);
    expect(new Set(titles).size).toBe(titles.length);
    expect(panels.length).toBeGreaterThan(10);
    for (const { targets = [] } of panels) expect(targets.length).toBeGreaterThan(0);
  });
});
