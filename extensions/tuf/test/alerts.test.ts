/** The alerts use the metric that a server with a repository exposes, and lead to sections of the page. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { openRepository, startTufServer } from "./tuf-server.ts";

interface Rule {
  readonly expr: string;
  readonly annotations: { readonly runbook_url: string };
}

const folder = join(import.meta.dirname, "..");
const { groups } = parse(readFileSync(join(folder, "alerts.yaml"), "utf8")) as {
  groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);

it("the alerts use a metric of each role", async () => {
  const server = await startTufServer();
  await openRepository(server);
  const text = await (await fetch(`${server.url}/metrics`)).text();
  for (const role of ["root", "targets", "snapshot", "timestamp"])
    expect(text).toContain(`qsp_tuf_metadata_expires_seconds{repository="firmware",role="${role}"}`);
  for (const { expr } of rules) expect(expr).toContain('qsp_tuf_metadata_expires_seconds{job="qsp"');
});

it("the alerts link to sections of the page", () => {
  const page = readFileSync(join(folder, "README.md"), "utf8");
  const anchors = [...page.matchAll(/^## (.+)$/gm)].map(([, title = ""]) =>
    title.toLowerCase().replaceAll(" ", "-"),
  );
  for (const { annotations } of rules)
    expect(anchors).toContain(annotations.runbook_url.split("extensions/tuf/README.md#")[1]);
});
