import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { describeProviders } from "../../support/crypto-providers.ts";
import { vectorSets } from "./vector-set.ts";
import { verifyCase } from "./verify-case.ts";

const root = join(import.meta.dirname, "../../..");

describe("our own vectors", () => {
  it.each(vectorSets)("of $name refer to a section of docs/formats.md", ({ specification }) => {
    const [page = "", heading] = specification.split("#");
    const headings = [...readFileSync(join(root, page), "utf8").matchAll(/^#+ (.+)$/gm)];
    const anchors = headings.map(([, text = ""]) => text.toLowerCase().replaceAll(/[^a-z0-9 -]/g, ""));
    expect(anchors.map((text) => text.replaceAll(" ", "-"))).toContain(heading);
  });

  it("contain the examples in docs/formats.md", () => {
    const page = readFileSync(join(root, "docs/formats.md"), "utf8");
    const shown = [...page.matchAll(/^```text\n(\{"[^\n]*\}|[0-9a-f]{64})\n```$/gm)].map(([, text]) => text);
    const strings = vectorSets.flatMap(({ cases }) =>
      cases.flatMap(({ intermediate, result }) => Object.values({ ...intermediate, ...result })),
    );
    expect(shown.length).toBe(8);
    expect(strings).toEqual(expect.arrayContaining(shown));
  });
});

describeProviders("our code with %s agrees with the vector for", (provider) => {
  const all = vectorSets.flatMap((set) =>
    set.cases.map((one) => ({ title: `${set.name}: ${one.name}`, set, one })),
  );
  it.each(all)("$title", async ({ set, one }) => {
    const { valid, ...made } = await verifyCase(provider, set, one);
    expect(valid).toBe(one.valid);
    expect(one.result).toMatchObject(made);
  });
});
