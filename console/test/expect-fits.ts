/** Pages of the tools in their sizes: pictures for a person to look at, and barriers for axe to find. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { findBarriers } from "./axe.ts";

/** Where pictures go. */
export const screenshotDir = process.env.QSP_TEST_SCREENSHOTS;
export const viewports = {
  desk: { width: 1280, height: 900 },
  phone: { width: 360, height: 740 },
} as const;

export function unfold(page: Page): Promise<unknown> {
  return page.evaluate("document.querySelectorAll('main details').forEach((part) => { part.open = true; })");
}

/** Expects that axe finds no barrier, and that the page does not scroll sideways. */
export async function expectFits(page: Page, size: keyof typeof viewports): Promise<void> {
  await page.setViewportSize(viewports[size]);
  await unfold(page);
  // What depends on the width follows a moment later.
  await expect.poll(() => page.evaluate("document.documentElement.scrollWidth")).toBe(viewports[size].width);
  expect(await findBarriers(page)).toEqual([]);
  await page.setViewportSize(viewports.desk);
}

export async function takePictures(page: Page, name: string): Promise<void> {
  const directory = screenshotDir ?? "";
  await mkdir(directory, { recursive: true });
  await page.evaluate("document.activeElement.blur(); scrollTo(0, 0)");
  for (const colorScheme of ["light", "dark"] as const)
    for (const [size, viewport] of Object.entries(viewports)) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize(viewport);
      await page.screenshot({ path: join(directory, `${name}-${colorScheme}-${size}.png`), fullPage: true });
    }
}
