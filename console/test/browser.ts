/** A real browser for the console tests. */
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core";
import { chromium } from "playwright-core";
import { isMissing } from "../../test/interop/tools.ts";

/** Whether no browser is installed; the tests then say that they need one. */
export const lacksBrowser = isMissing("chromium-headless-shell");
export const needsBrowser = lacksBrowser ? " (needs chromium-headless-shell)" : "";

/**
 * Starts the browser: Chromium without its own windows and services, which takes a third less CPU time. End it
 * with `close`.
 */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: "/usr/bin/chromium-headless-shell",
    timeout: 120_000,
    // Nobody looks at the screen, and drawing it without a GPU would slow down the servers.
    args: ["--disable-gpu", "--disable-software-rasterizer", "--in-process-gpu"],
  });
}

/** A tab and its problems. */
export interface Visit {
  readonly page: Page;
  /**
   * Uncaught script errors and errors logged by the browser, including Content-Security-Policy violations.
   */
  readonly complaints: string[];
  /** URLs on other origins that the page requested. */
  readonly foreign: string[];
}

/** Opens a console page like a first-time visitor: "sign" for "#/sign". */
export async function visit(
  browser: Browser,
  url: string,
  path: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  return visitIn(await browser.newContext(options), url, path);
}

/** Opens a console page in a new tab that shares loaded files with other tabs. */
export async function visitIn(context: BrowserContext, url: string, path: string): Promise<Visit> {
  return visitTab(await context.newPage(), url, path);
}

/**
 * Opens a console page in an existing tab. Whatever the tab showed is dropped, unless it was the same page.
 *
 * @param path the part of its address after "/#/", or with a slash the whole path: "/reference"
 */
export async function visitTab(page: Page, url: string, path: string): Promise<Visit> {
  page.setDefaultTimeout(60_000);
  const complaints: string[] = [];
  const foreign: string[] = [];
  page.on("console", (message) => {
    // Chromium logs an error for every 4xx response; for the console, a refusal is a normal answer.
    const isRefusal = /^Failed to load resource: the server responded with a status of 4/.test(
      message.text(),
    );
    if (message.type() === "error" && !isRefusal) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== url) foreign.push(request.url());
  });
  await page.goto(url + (path.startsWith("/") ? path : `/#/${path}`));
  await page.locator("main h1").waitFor();
  return { page, complaints, foreign };
}

/** Resets a tab: empty, without listeners, interception or stored data. */
export async function emptyTab(page: Page): Promise<void> {
  for (const event of ["console", "pageerror", "request", "response"] as const)
    page.removeAllListeners(event);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.evaluate("localStorage.clear(); sessionStorage.clear()");
  await page.goto("about:blank");
}

/** The part of the page with one step. */
export function stepOf(page: Page, title: string): Locator {
  return page.locator("li.step", { has: page.getByRole("heading", { name: title, exact: true }) });
}

/**
 * Presses a step's button and waits for the outcome.
 *
 * @returns the outcome's sentence
 */
export async function runStep(page: Page, title: string): Promise<string> {
  const step = stepOf(page, title);
  // A finished step folds when the next one runs.
  const folded = step.locator(".fold[aria-expanded=false]");
  if ((await folded.count()) > 0) await folded.click();
  await step.locator(".act button").click();
  return outcomeOf(step);
}

function outcomeOf(step: Locator): Promise<string> {
  return textOf(step.locator(".outcome:not(:empty), [role=alert]").first());
}

/** An element's visible text, once it appears. */
export async function textOf(place: Locator): Promise<string> {
  await place.waitFor();
  const [text = ""] = await place.allInnerTexts();
  return text;
}

/**
 * Does all steps of a story.
 *
 * @returns their sentences
 */
export async function runStory(page: Page): Promise<string[]> {
  const steps = page.locator("li.step:has(.act)");
  await steps.first().waitFor();
  const outcomes: string[] = [];
  for (const step of await steps.all()) {
    await step.locator(".act button").click();
    outcomes.push(await outcomeOf(step));
  }
  return outcomes;
}

/** Who checked what in a step, and the finding: "server: valid". Some checks are folded. */
export async function checksOf(page: Page, title: string): Promise<string[]> {
  const rows = await stepOf(page, title).locator(".checks .found > span").all();
  return Promise.all(
    rows.map(async (row) => {
      const side = await row.locator(".side").textContent();
      return `${side === "Your browser" ? "browser" : "server"}: ${await row.locator(".verdict").textContent()}`;
    }),
  );
}
