/** How soon the console shows its first content, on loopback. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { visit } from "./browser.ts";
import { describeInBrowser } from "./telling.ts";

const maxFirstPaintMs = 1000;
/** Maximum milliseconds until the first screen shows two verdicts. */
const maxVerifiedMs = 3000;
/** Other load can only slow a visit down, so the fastest one counts. */
const visits = 5;

describeInBrowser("the console", (stage) => {
  /** Milliseconds of the fastest visit to the home page. */
  async function measureBest(measure: (page: Page) => Promise<number>): Promise<number> {
    const times: number[] = [];
    for (let i = 0; i < visits; i += 1) {
      const { page } = await visit(stage().browser, stage().server.url, "");
      times.push(await measure(page));
      await page.context().close();
    }
    return Math.min(...times);
  }

  it(`has its first paint within ${maxFirstPaintMs} ms`, async () => {
    const bestMs = await measureBest(async (page) => {
      const read = () =>
        page.evaluate<number>("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0");
      await expect.poll(read).toBeGreaterThan(0);
      return read();
    });
    expect(bestMs).toBeLessThan(maxFirstPaintMs);
  });

  it(`shows a signature that both sides have verified within ${maxVerifiedMs} ms`, async () => {
    const bestMs = await measureBest(async (page) => {
      await page.locator('.verdicts [data-found="valid"]').nth(1).waitFor();
      return page.evaluate<number>("performance.now()");
    });
    expect(bestMs).toBeLessThan(maxVerifiedMs);
  });
});
