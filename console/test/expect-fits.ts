/** Layout and accessibility checks for pages. */
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { findBarriers } from "./axe.ts";
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
