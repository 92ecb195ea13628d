/** Plays stories in tests: a server and a browser per test file, and their pages. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "vitest";
import { type RunningServer, startServer } from "../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../test/support/temporary-directory.ts";
import {
  checksOf,
  emptyTab,
  lacksBrowser,
  needsBrowser,
  openBrowser,
  runStep,
  runStory,
  type Visit,
  visitTab,
} from "./browser.ts";

/** A server, and a browser to use it with. */
export interface Stage {
  readonly server: RunningServer;
  readonly browser: Browser;
}

/** Describes tests that need a browser. */
export function describeIfBrowser(name: string, define: () => void): void {
  describe.skipIf(lacksBrowser)(`${name}, in a real browser${needsBrowser}`, { timeout: 180_000 }, define);
}

/** Describes tests in a real browser, which share a server and the browser. */
export function describeInBrowser(name: string, define: (stage: () => Stage) => void): void {
  describeIfBrowser(name, () => define(setUpStage()));
}

/** Starts both before a block's tests, and stops them afterwards. */
function setUpStage(): () => Stage {
  const dataDir = makeTemporaryDirectory(afterAll);
  let stage: Stage | undefined;
  beforeAll(async () => {
    stage = { server: await startServer({ dataDir }), browser: await openBrowser() };
  }, 180_000);
  afterAll(async () => {
    await stage?.browser.close();
    await stage?.server.stop();
  });
  return () => found(stage);
}

/**
 * Opens a story anew for each test, and checks at the end that there were no errors and no third-party
 * requests. All tests of a block share one tab, because opening one takes longer than most tests; a test that
 * changes more of its tab than `emptyTab` resets needs its own block.
 */
export function openStory(stage: () => Stage, path: string): () => Page {
  let tab: Page | undefined;
  let opened: Visit | undefined;
  beforeAll(async () => {
    const context = await stage().browser.newContext();
    tab = await context.newPage();
  });
  beforeEach(async () => {
    opened = await visitTab(found(tab), stage().server.url, path);
  });
  afterEach(async () => {
    expect(opened).toMatchObject({ complaints: [], foreign: [] });
    await emptyTab(found(tab));
  });
  afterAll(() => tab?.context().close());
  return () => found(opened).page;
}

/**
 * Does all steps of the story on a page.
 *
 * @returns one line per step: its sentence, and in brackets who checked what
 */
export async function readStory(page: Page): Promise<string> {
  const outcomes = await runStory(page);
  const titles = await page.locator("li.step:has(.act) h2").allInnerTexts();
  const checks = await Promise.all(titles.map((title) => checksOf(page, title)));
  return outcomes
    .map((says, at) => (checks[at]?.length ? `${says} [${checks[at].join(", ")}]` : says))
    .join("\n");
}

/**
 * Does steps in order.
 *
 * @returns the last one's sentence
 */
export async function runSteps(page: Page, ...titles: string[]): Promise<string> {
  let outcome = "";
  for (const title of titles) outcome = await runStep(page, title);
  return outcome;
}

/** Calls the server over REST, like another program while a reader looks at a page. */
export async function post<Answer>(url: string, body: object): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as Answer;
}

/** Requests a token. */
export async function requestToken(url: string, login: object): Promise<string> {
  return (await post<{ readonly token: string }>(`${url}/api/auth/token`, login)).token;
}

/** Calls the key service. */
export function callKms({ server }: Stage, path: string, body: object) {
  return post<{ readonly result: { readonly keyId: string } }>(`${server.url}/api/kms/${path}`, body);
}

type Message = Record<string, unknown>;

/** A man in the middle: changes the answers to an RPC on their way to the page. */
export async function meddle(page: Page, rpc: string, change: (answer: Message) => Message): Promise<void> {
  await page.route(`**/${rpc}`, async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    await route.fulfill({ response, json: response.ok() ? change(body) : body });
  });
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("it has not arrived yet");
  return value;
}
