/** Accessibility violations on a page. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Rules whose result depends on colors. */
const colorRules = ["color-contrast", "link-in-text-block"];

/**
 * The violations that axe finds: rules and elements.
 *
 * @param areColors whether only the colors differ from a page that was checked
 */
export async function findBarriers(page: Page, areColors = false): Promise<string[]> {
  if (await page.evaluate("!('axe' in window)")) await page.evaluate(axe);
  const { violations } = await page.evaluate<{
    violations: { id: string; impact: string; nodes: { html: string }[] }[];
  }>(
    `axe.run(document, { resultTypes: ['violations'], ${areColors ? `runOnly: ${JSON.stringify(colorRules)}` : ""} })`,
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 120)}`));
}
