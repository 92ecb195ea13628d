/** The reference of a server that only users may call. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createUserStore } from "../../../src/identity/users.ts";
import { makeSqlitePlace } from "../../../test/support/on-both.ts";
import { hashCheaply, password } from "../../../test/support/passwords.ts";
import { type RunningServer, startServer } from "../../../test/support/start-server.ts";
import { lacksBrowser, needsBrowser, openBrowser } from "../browser.ts";

const title = `the reference page of a server with users${needsBrowser}`;
describe.skipIf(lacksBrowser)(title, { timeout: 180_000 }, () => {
  let server: RunningServer;
  let browser: Browser;

  beforeAll(async () => {
    const place = await makeSqlitePlace(afterAll);
    const store = await place.open({ atEnd: afterAll });
    const user = { name: "ada", role: "user", passwordHash: hashCheaply(password) } as const;
    await createUserStore(store).add(user, new Date());
    await store.close();
    server = await startServer({ dataDir: place.directory, args: ["--auth", "token"] });
    browser = await openBrowser();
  }, 180_000);

  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  async function open(call: string): Promise<Page> {
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(`${server.url}/reference#/${call}`);
    await page.locator("main h1").waitFor();
    return page;
  }

  async function logIn(page: Page, typed: string): Promise<void> {
    await page.getByLabel("User").fill("ada");
    await page.getByLabel("Password").fill(typed);
    await page.getByRole("button", { name: "Log in" }).click();
  }

  it("marks calls that require a token, and describes token errors once", async () => {
    const page = await open("kms_KmsService_ListKeys");
    await page.getByText("Requires a token.", { exact: true }).waitFor();
    await page.getByText("This call requires a token. Log in first.").waitFor();
    expect(await page.getByText("TOKEN_EXPIRED").isVisible()).toBe(false);
    expect(await page.locator(".commands pre").textContent()).toContain("$QSP_TOKEN");
  });

  it("issues a token only for the right password, and calls then succeed", async () => {
    const page = await open("kms_KmsService_ListKeys");
    await page.getByRole("link", { name: "Log in" }).click();
    await logIn(page, "not the password");
    await page.getByRole("alert").waitFor();
    await logIn(page, password);
    await page.waitForURL(/\/reference#\/kms_KmsService_ListKeys$/);
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator(".sent").getByText("200").waitFor();
    expect(await page.content()).not.toContain(password);
  });
});
