/** Layout and accessibility checks for pages. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";

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

export const viewports = {
  desk: { width: 1280, height: 900 },
  phone: { width: 360, height: 740 },
} as const;

/** Opens all finished steps, and everything that is folded in them. */
export function unfold(page: Page): Promise<unknown> {
  return page.evaluate(`
    document.querySelectorAll("main .fold[aria-expanded=false]").forEach((button) => button.click());
    document.querySelectorAll("main details").forEach((part) => { part.open = true; });
  `);
}

/** Expects no axe violations and no sideways scrolling. */
export async function expectFits(page: Page, size: keyof typeof viewports): Promise<void> {
  await page.setViewportSize(viewports[size]);
  await unfold(page);
  // Elements that depend on the width update a moment later.
  await expect.poll(() => page.evaluate("document.documentElement.scrollWidth")).toBe(viewports[size].width);
  expect(await findBarriers(page)).toEqual([]);
  await page.setViewportSize(viewports.desk);
}
