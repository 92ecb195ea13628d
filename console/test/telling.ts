/** Stories before tests: a server and a browser for a file of tests, and pages of them. */
import type { Browser, Page, Request } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { type RunningServer, startServer } from "../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../test/support/temporary-directory.ts";
import {
  checksOf,
  emptyTab,
  openBrowser,
  runStep,
  runStory,
  type Visit,
  visit,
  visitTab,
} from "./browser.ts";

/** A server, and a browser to look at it with. */
export interface Stage {
  readonly server: RunningServer;
  readonly browser: Browser;
}

interface StageOptions {
  /** Flags of the server. */
  readonly args?: readonly string[];
  /** What an operator does before the server starts. */
  readonly prepare?: (dataDir: string) => Promise<void>;
}

/** Starts both before the tests of a block, and ends them after. */
export function setUpStage({ args = [], prepare }: StageOptions = {}): () => Stage {
  const dataDir = makeTemporaryDirectory(afterAll);
  let stage: Stage | undefined;
  beforeAll(async () => {
    await prepare?.(dataDir);
    stage = { server: await startServer({ dataDir, args }), browser: await openBrowser() };
  }, 180_000);
  afterAll(async () => {
    await stage?.browser.close();
    await stage?.server.stop();
  });
  return () => found(stage);
}

/**
 * Opens a story anew for each test, and sees at its end that nothing was complained of and nobody else was asked. All
 * tests of a block have one tab, for a new one takes longer than most of them; one that changes more of its tab than
 * `emptyTab` undoes needs a block of its own.
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

/** A story with all its steps done. */
export interface ToldStory {
  readonly outcomes: readonly string[];
  /** A line for each step: its sentence, and in brackets who checked what. */
  readonly text: string;
}

/** Does all steps of the story that a page shows. */
export async function readStory(page: Page): Promise<ToldStory> {
  const outcomes = await runStory(page);
  const titles = await page.locator("li.step:has(.act) h2").allInnerTexts();
  const checks = await Promise.all(titles.map((title) => checksOf(page, title)));
  const lines = outcomes.map((says, at) =>
    checks[at]?.length ? `${says} [${checks[at].join(", ")}]` : says,
  );
  return { outcomes, text: lines.join("\n") };
}

/** Tells a story once, for all tests of a block. @param logIn who tells it, where the server wants to know */
export function tellStory(
  stage: () => Stage,
  path: string,
  { logIn }: { readonly logIn?: { readonly username: string; readonly password: string } } = {},
): () => ToldStory {
  let told: ToldStory | undefined;
  beforeAll(async () => {
    const { browser, server } = stage();
    const { page, complaints, foreign } = await visit(browser, server.url, path);
    if (logIn) {
      await page.getByLabel("User").fill(logIn.username);
      await page.getByLabel("Password").fill(logIn.password);
      await page.getByRole("button", { name: "Log in" }).click();
    }
    told = await readStory(page);
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    await page.context().close();
  }, 180_000);
  return () => found(told);
}

/** Does steps in their order. @returns the sentence of the last */
export async function runSteps(page: Page, ...titles: string[]): Promise<string> {
  let outcome = "";
  for (const title of titles) outcome = await runStep(page, title);
  return outcome;
}

/** The calls of an RPC that a page makes from now on. */
export function recordCalls(page: Page, rpc: string): Request[] {
  const calls: Request[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith(`/${rpc}`)) calls.push(request);
  });
  return calls;
}

/** What calls of the key service answer, as far as tests read it. */
interface KmsAnswer {
  readonly status: string;
  readonly result: { readonly keyId: string };
}

/** Calls the key service over REST, as another program does while a reader looks at a page. */
export async function callKms({ server }: Stage, path: string, body: object): Promise<KmsAnswer> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${server.url}/api/kms/${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  return (await response.json()) as KmsAnswer;
}

type Message = Record<string, unknown>;

/** Somebody in between: changes requests of an RPC on their way to the server, and answers on their way back. */
export async function meddle(
  page: Page,
  rpc: string,
  {
    request = (it) => it,
    answer = (it) => it,
  }: Partial<Record<"request" | "answer", (it: Message) => Message>>,
): Promise<void> {
  await page.route(`**/${rpc}`, async (route) => {
    const postData = JSON.stringify(request(route.request().postDataJSON()));
    const response = await route.fetch({ postData });
    const body = await response.json();
    await route.fulfill({ response, json: response.ok() ? answer(body) : body });
  });
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("it is not there yet");
  return value;
}
