/**
 * Draws the pictures for docs/getting-started.md: a new server's console, 1280 pixels wide, in light colours.
 * Run it after changing the console, and commit the files: node console/test/draw-screenshots.ts
 *
 * Needs Chromium and pngquant (Debian: apt-get install pngquant), which reduces a picture to 128 colours and
 * a quarter of its size.
 */
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { startServer } from "../../test/support/start-server.ts";
import { openBrowser, runStory, visit } from "./browser.ts";

const folder = join(import.meta.dirname, "../../docs/images");
/** Maximum size in bytes of a picture on a page. */
const maxBytes = 150_000;

/** A picture: a console page, and what a reader does there first. */
interface Picture {
  readonly name: string;
  /** The path after "#/". */
  readonly path: string;
  readonly height: number;
  readonly prepare: (page: Page) => Promise<unknown>;
}

/** Waits until both server and browser have verified the signature. */
function waitForVerdicts(page: Page, found: "valid" | "invalid"): Promise<void> {
  return page.locator(`.verdicts li[data-found=${found}]`).nth(1).waitFor();
}

const pictures: readonly Picture[] = [
  { name: "signature", path: "", height: 800, prepare: (page) => waitForVerdicts(page, "valid") },
  {
    name: "flipped-bit",
    path: "",
    height: 800,
    prepare: async (page) => {
      await waitForVerdicts(page, "valid");
      await page.getByRole("button", { name: "Flip one bit" }).click();
      await waitForVerdicts(page, "invalid");
    },
  },
  {
    name: "managed-key",
    path: "keys",
    height: 900,
    prepare: async (page) => {
      await runStory(page);
      await page.evaluate("scrollTo(0, 0)");
    },
  },
];

const dataDir = await mkdtemp(join(tmpdir(), "qsp-screenshots-"));
const server = await startServer({ dataDir });
const browser = await openBrowser();
await mkdir(folder, { recursive: true });
for (const { name, path, height, prepare } of pictures) {
  const { page } = await visit(browser, server.url, path, {
    viewport: { width: 1280, height },
    deviceScaleFactor: 1,
    colorScheme: "light",
    reducedMotion: "reduce",
  });
  await prepare(page);
  const file = join(folder, `${name}.png`);
  await page.screenshot({ path: file });
  execFileSync("pngquant", ["--force", "--strip", "--speed", "1", "--output", file, "128", file]);
  const { size } = await stat(file);
  console.log(`${file}: ${size} bytes${size > maxBytes ? `, more than ${maxBytes}` : ""}`);
}
await browser.close();
await server.stop();
await rm(dataDir, { recursive: true });
