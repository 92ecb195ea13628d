import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { runToEndHere } from "../support/run-here.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";
import { listMetrics, panels, readAlertRules, troubles } from "./alert-rules.ts";
import { deployFolder, readDeployed } from "./unit-file.ts";

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
const nameOf = ({ parent, name }: (typeof methods)[number]) => `${parent.typeName}/${name}`;

/** The calls that an alert's expression names, in a selector such as `method=~`. */
function listNamed(name: string, selector: string): string[] {
  const { expr = "" } = rules.find(({ alert }) => alert === name) ?? {};
  const [, pattern = ""] = new RegExp(`${selector}"([^"]+)"`).exec(expr) ?? [];
  const named = new RegExp(`^(?:${pattern.replaceAll("\\\\", "\\")})$`);
  return methods.map(nameOf).filter((method) => named.test(method));
}

/** Reads a server's metrics with a token that it requests as prometheus.yaml says. */
async function scrape(url: string, secret: string): Promise<string> {
  const [{ oauth2 }] = parse(readDeployed("prometheus/prometheus.yaml")).scrape_configs;
  const tokenUrl = oauth2.token_url.replace("http://qsp-1:8080", url);
  const body = new URLSearchParams({ grant_type: "client_credentials", scope: oauth2.scopes.join(" ") });
  const basic = { authorization: `Basic ${btoa(`${oauth2.client_id}:${secret}`)}` };
  const answer = await fetch(tokenUrl, { method: "POST", headers: basic, body });
  const { access_token } = (await answer.json()) as { readonly access_token: string };
  const bearer = { authorization: `Bearer ${access_token}` };
  return (await fetch(`${url}/metrics`, { headers: bearer })).text();
}

describe("an expression of an alert or a panel", () => {
  let server: RunningServer;
  /** The labels of each metric. */
  const exposed = new Map<string, Set<string>>();
  beforeAll(async () => {
    const dataDir = makeTemporaryDirectory(afterAll);
    const place = ["--data-dir", dataDir];
    const rights = ["--role", "auditor", "--scope", "metrics.read"];
    await runToEndHere(["store", "init", ...place]);
    const { stdout } = await runToEndHere(["client", "add", "prometheus", ...rights, ...place]);
    const args = ["--auth", "token", "--issuer-url", "http://localhost:8080"];
    server = await startServer({ dataDir, args });
    await fetch(`${server.url}/api/hello`);
    // Failure series do not exist until the first failure.
    await fetch(`${server.url}/api/kms/keys`);
    const text = await scrape(server.url, stdout.trim());
    // Prometheus adds "up" and "instance" to each target.
    for (const [, name = "", labels = ""] of `${text}\nup 1`.matchAll(/^([a-zA-Z_:][\w:]*)(\{.*\})? /gm)) {
      const known = exposed.get(name) ?? new Set(["job", "instance"]);
      for (const [, label = ""] of labels.matchAll(/[{,](\w+)="/g)) known.add(label);
      exposed.set(name, known);
    }
  }, 180_000);
  afterAll(() => server?.stop());

  it.each(expressions)(
    "uses only metrics and labels that a server exposes, and selects only servers: $user",
    ({ expr }) => {
      const metrics = listMetrics(expr);
      expect(metrics.length).toBeGreaterThan(0);
      expect(metrics.filter((name) => !exposed.has(name))).toEqual([]);
      const unselected = expr
        .replaceAll(/[a-zA-Z_:][\w:]*\s*\{[^}]*\}/g, "")
        .match(/\b(?:qsp|process|nodejs)_\w+/g);
      expect(unselected ?? []).toEqual([]);
      for (const [, name = "", selector = ""] of expr.matchAll(/([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}/g)) {
        expect(selector).toContain('job="qsp"');
        const labels = [...selector.matchAll(/(\w+) ?[=!]~?"/g)].map(([, label]) => label);
        expect([...(exposed.get(name) ?? [])]).toEqual(expect.arrayContaining(labels));
      }
    },
  );

  it.each(expressions)("uses only gRPC codes: $user", ({ expr }) => {
    for (const [, codes = ""] of expr.matchAll(/code[!=]~?"([^"]*)"/g))
      for (const code of codes.split("|")) expect(["OK", ...Object.keys(Code)]).toContain(code);
  });
});

describe("the alerts", () => {
  it("count the logins of users and clients, and exclude only streams from slow calls", () => {
    const logIns = methods.filter(({ name }) => name === "IssueToken");
    expect(listNamed("QspLoginsRefused", "method=~")).toEqual(logIns.map(nameOf));
    const streams = methods.filter(({ methodKind }) => methodKind !== "unary");
    expect(listNamed("QspCallsSlow", "method!~")).toEqual(streams.map(nameOf));
  });

  it.each(rules)("state their severity and link to the runbook: $alert", ({ alert, labels, annotations }) => {
    expect(labels.severity).toMatch(/^(critical|warning)$/);
    expect(annotations.summary).toMatch(/\.$/);
    expect(annotations.runbook_url).toMatch(new RegExp(`/docs/runbook\\.md#${alert.toLowerCase()}$`));
    const [, section = ""] =
      new RegExp(`^## ${alert}\\n\\n(.*?)(?=^## |$(?![\\s\\S]))`, "ms").exec(runbook) ?? [];
    expect(section).toMatch(/^\*\*What it means:\*\* .+\n\n\*\*What to do:\*\*\n\n1\. ./);
  });

  it("match the runbook, and each have a test case", () => {
    const sections = [...runbook.matchAll(/^## (Qsp\w+)$/gm)].map(([, name]) => name);
    const names = rules.map(({ alert }) => alert);
    expect([sections, Object.keys(troubles).sort()]).toEqual([names, names.toSorted()]);
  });
});

describe("the Grafana dashboard", () => {
  it("has panels, which all query metrics", () => {
    expect(panels.length).toBeGreaterThan(10);
    for (const { title, targets = [] } of panels) expect(targets.length, title).toBeGreaterThan(0);
  });
});
