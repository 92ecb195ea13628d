/** A real browser before the real program: what tests of the console look at. */
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";
import { isMissing } from "../../test/interop/tools.ts";

/** Whether there is no browser here; then the tests say that they need it. */
export const lacksBrowser = isMissing("chromium");
export const needsBrowser = lacksBrowser ? " (needs chromium)" : "";

/** Starts it. Ends with `close`. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: "/usr/bin/chromium",
    timeout: 120_000,
    // Nobody looks at the screen, and drawing it without a GPU takes the time of the servers.
    args: ["--disable-gpu", "--disable-software-rasterizer", "--in-process-gpu"],
  });
}

/** A tab, and what went wrong in it. */
export interface Visit {
  readonly page: Page;
  /** Errors that scripts threw, and that the browser wrote of; a Content-Security-Policy that was broken among them. */
  readonly complaints: string[];
  /** Addresses of another origin that the page asked for. */
  readonly foreign: string[];
}

/** Opens a page of the console, as somebody who has never been there: "sign" for "#/sign". */
export async function visit(
  browser: Browser,
  url: string,
  path: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  return visitIn(await browser.newContext(options), url, path);
}

/** Opens a page of the console in a tab beside others, which share the files that were loaded. */
export async function visitIn(context: BrowserContext, url: string, path: string): Promise<Visit> {
  return visitTab(await context.newPage(), url, path);
}

/** Opens a page of the console in a tab that is there. Whatever the tab showed is gone, unless it was that page. */
export async function visitTab(page: Page, url: string, path: string): Promise<Visit> {
  page.setDefaultTimeout(60_000);
  const complaints: string[] = [];
  const foreign: string[] = [];
  page.on("console", (message) => {
    // Chromium writes an error for every answer of 4xx; to the console, a refusal is an answer like others.
    const isRefusal = /^Failed to load resource: the server responded with a status of 4/.test(
      message.text(),
    );
    if (message.type() === "error" && !isRefusal) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== url) foreign.push(request.url());
  });
  await page.goto(`${url}/#/${path}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  return { page, complaints, foreign };
}

/** Makes a tab as good as new: empty, and nobody listens to it, meddles with it or is remembered by it. */
export async function emptyTab(page: Page): Promise<void> {
  for (const event of ["console", "pageerror", "request", "response"] as const)
    page.removeAllListeners(event);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.evaluate("localStorage.clear(); sessionStorage.clear()");
  await page.goto("about:blank");
}

/** The part of the page that is one step. */
export function stepOf(page: Page, title: string): Locator {
  return page.locator("li.step", { has: page.getByRole("heading", { name: title, exact: true }) });
}

/** Presses a step's button, and waits for what comes of it. @returns the sentence that says it */
export async function runStep(page: Page, title: string): Promise<string> {
  const step = stepOf(page, title);
  await step.locator(".act button").click();
  return outcomeOf(step);
}

function outcomeOf(step: Locator): Promise<string> {
  return textOf(step.locator(".outcome:not(:empty), [role=alert]").first());
}

/** What a reader sees of something, once it is there. */
export async function textOf(place: Locator): Promise<string> {
  await place.waitFor();
  const [text = ""] = await place.allInnerTexts();
  return text;
}

/** Does all steps of a story. @returns their sentences */
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

/** Who checked what in a step, and what they found: "server: valid". Some checks are folded. */
export async function checksOf(page: Page, title: string): Promise<string[]> {
  const rows = await stepOf(page, title).locator(".checks li").all();
  return Promise.all(
    rows.map(async (row) => {
      const side = await row.locator(".side").textContent();
      return `${side?.endsWith("browser") ? "browser" : "server"}: ${await row.locator(".verdict").textContent()}`;
    }),
  );
}
