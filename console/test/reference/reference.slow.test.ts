/** The API reference in a real browser, in a fresh tab for each test. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type ApiServer, startApi } from "../../../test/openapi/api-server.ts";
import { listOperations } from "../../../test/openapi/call-examples.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { lacksBrowser, needsBrowser, openBrowser, visit } from "../browser.ts";
import { findBarriers } from "../expect-fits.ts";

const widths = { phone: 390, desk: 1440 } as const;

describe.skipIf(lacksBrowser)(`the reference page in a browser${needsBrowser}`, { timeout: 180_000 }, () => {
  let api: ApiServer;
  let browser: Browser;
  const atEnd = endAfterAll();

  beforeAll(async () => {
    api = await startApi("open", atEnd);
    browser = await openBrowser();
  }, 180_000);

  afterAll(() => browser?.close());

  /** Opens the page in a fresh tab, which must report no errors and make no third-party requests. */
  async function open(call = "", width: number = widths.desk): Promise<Page> {
    const path = `/reference${call && `#/${call}`}`;
    const { page, complaints, foreign } = await visit(browser, api.url, path, {
      viewport: { width, height: 900 },
    });
    onTestFinished(async () => {
      await page.context().close();
      expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    });
    return page;
  }

  const search = (page: Page) => page.getByRole("searchbox", { name: "Search calls" });
  const snippet = (page: Page) => page.locator(".commands pre");
  const send = (page: Page) => page.getByRole("button", { name: "Send" }).click();
  const answer = (page: Page) => page.getByRole("region", { name: "Server's answer" }).locator("pre");
  const status = (page: Page) => page.locator(".sent");

  /** Logs in on the console's page, which leads back to the call. */
  async function logIn(page: Page, username: string): Promise<void> {
    await page.getByRole("link", { name: "Log in" }).click();
    await page.getByLabel("User").fill(username);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("button", { name: "Log out" }).waitFor();
    await page.waitForURL(/\/reference/);
  }

  it("lists every operation, and the errors that most calls share once", async () => {
    const page = await open();
    expect(await page.locator(".index li").count()).toBe(listOperations(api.document).length);
    expect(await page.locator("main").getByText("DEADLINE_EXCEEDED").count()).toBe(1);
  });

  it("loads less than 120 kB and draws fewer than 4,000 elements before it answers a search", async () => {
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    const loads: Promise<number>[] = [];
    page.on("requestfinished", (request) => {
      loads.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
    });
    await page.goto(`${api.url}/reference`);
    await search(page).fill("watch");
    await page.getByText(/^\d+ calls$/).waitFor();
    const sizes = await Promise.all(loads);
    expect(sizes.length).toBeGreaterThanOrEqual(4);
    const byteCount = sizes.reduce((sum, size) => sum + size, 0);
    expect(byteCount).toBeGreaterThan(50_000);
    expect(byteCount).toBeLessThan(120_000);
    expect(await page.locator("*").count()).toBeLessThan(4_000);
  });

  it("finds a call by name, path and words of its description, and opens the first with Enter", async () => {
    const page = await open();
    await page.keyboard.press("/");
    const links = page.locator("#menu li a:visible");
    for (const query of ["rotatekey", "/api/kms/rotate-key", "rotate-key post kms"]) {
      await search(page).fill(query);
      await links.filter({ hasText: "RotateKey" }).first().waitFor();
      expect(await links.count()).toBeLessThan(4);
    }
    await search(page).fill("no-such-call");
    await page.getByText("No matching call").waitFor();
    await search(page).fill("rotatekey");
    await search(page).press("Enter");
    await page.getByRole("heading", { level: 1, name: "RotateKey" }).waitFor();
    expect(page.url()).toMatch(/#\/kms_KmsService_RotateKey$/);
    await expect.poll(() => page.title()).toBe("RotateKey – API reference");
  });

  it("shows a call's fields, a server's answer, and its own errors separate from common ones", async () => {
    const page = await open("kms_KmsService_Sign");
    expect(await page.locator(".operation").innerText()).toMatch(/keyId.*required/);
    const shown = page.getByRole("region", { name: "Example answer" });
    expect(await shown.textContent()).toContain('"algorithm": "ML-DSA-65"');
    expect(await shown.textContent()).toContain("SHORTENED/FROM/3309/BYTES");
    await page.getByText("KEY_STATE_INVALID", { exact: true }).waitFor();
    expect(await page.getByText("STORE_FULL").isVisible()).toBe(false);
    await page.getByText(/^\d+ errors that most calls share$/).click();
    await page.getByText("STORE_FULL").waitFor();
  });

  it("writes the call in five languages, and keeps the language for the next call", async () => {
    const page = await open("kms_KmsService_Sign");
    for (const [language, start] of Object.entries({
      curl: "curl --fail-with-body",
      grpcurl: "kms.KmsService/Sign",
      Python: "requests.post(",
      Go: 'http.NewRequest("POST"',
      TypeScript: "await fetch(",
    })) {
      await page.getByRole("button", { name: language, exact: true }).click();
      expect(await snippet(page).textContent()).toContain(start);
    }
    await page.goto(`${api.url}/reference#/kms_KmsService_GetKey`);
    await page.getByRole("heading", { level: 1, name: "GetKey" }).waitFor();
    expect(await snippet(page).textContent()).toContain("await fetch(");
  });

  it("updates the snippet with the form, and makes the call unless the body is not JSON", async () => {
    const page = await open("kms_KmsService_CreateKey");
    await page.getByLabel(/^Body/).fill('{"alias": "it\'s mine"}');
    expect(await snippet(page).textContent()).toContain(`it'\\''s mine`);
    await send(page);
    await status(page).getByText("200").waitFor();
    expect(await answer(page).textContent()).toContain('"alias": "it\'s mine"');
    await page.getByLabel(/^Body/).fill("{alias: 1}");
    await send(page);
    expect(await page.getByRole("alert").textContent()).toContain("not JSON");
  });

  it("shows a refusal with its reason, and reports an address without a call", async () => {
    const page = await open("kms_KmsService_GetKey");
    await send(page);
    await status(page).getByText("404").waitFor();
    expect(await answer(page).textContent()).toContain("KEY_NOT_FOUND");
    await page.goto(`${api.url}/reference#/kms_KmsService_Forge`);
    expect(await page.getByRole("alert").textContent()).toContain("no call at this address");
  });

  it("follows a stream until the reader stops it", async () => {
    const page = await open("blockchain_BlockchainService_WatchBlocks");
    await send(page);
    await answer(page).getByText("blockHash").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  });

  it("gets a token, sends it with the call, and never writes it into a snippet", async () => {
    const page = await open("pqc_TokenService_GetSecureData");
    await page.getByText("Requires a token.", { exact: true }).waitFor();
    await send(page);
    await status(page).getByText("401").waitFor();
    await logIn(page, "ada");
    await send(page);
    await status(page).getByText("200").waitFor();
    expect(await answer(page).textContent()).toContain('"subject": "ada"');
    expect(await snippet(page).textContent()).toContain("Bearer $QSP_TOKEN");
    expect(await page.content()).not.toContain("eyJ");
    await page.getByRole("button", { name: "Log out" }).click();
    await send(page);
    await status(page).getByText("401").waitFor();
  });

  it("drops a token that the server will never accept again", async () => {
    const encode = (claims: object) => Buffer.from(JSON.stringify(claims)).toString("base64url");
    const token = `${encode({ alg: "ML-DSA-65", typ: "JWT", kid: "another" })}.${encode({ sub: "eve" })}.c2ln`;
    const page = await open("pqc_TokenService_GetSecureData");
    // From a log-in before the issuer's key was revoked.
    const session = JSON.stringify({ username: "eve", token });
    await page.evaluate(`sessionStorage.setItem("qsp-session", ${JSON.stringify(session)})`);
    await page.reload();
    await page.getByText("eve", { exact: true }).waitFor();
    await send(page);
    await answer(page).getByText("TOKEN_KEY_UNKNOWN").waitFor();
    await page.getByRole("link", { name: "Log in" }).waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
  });

  it("leads back to the console, which shares the log-in and the theme", async () => {
    const page = await open();
    await logIn(page, "ada");
    await page.getByLabel("Theme").selectOption("Dark");
    await page.getByRole("link", { name: "Console" }).click();
    await page.waitForURL(`${api.url}/`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    expect(await page.evaluate("sessionStorage.getItem('qsp-session')")).toContain('"ada"');
    const background = "getComputedStyle(document.body).backgroundColor";
    await expect.poll(() => page.evaluate(background)).toBe("rgb(20, 24, 27)");
  });

  const calls = ["", "kms_KmsService_CreateKey", "google_cloud_kms_v1_KeyManagementService_UpdateCryptoKey"];
  describe.each(Object.entries(widths))("on a %s", (_name, width) => {
    it.each(calls)("keeps nobody out and does not scroll sideways, in both colours: #/%s", async (call) => {
      const page = await open(call, width);
      await page.evaluate("for (const part of document.querySelectorAll('main details')) part.open = true");
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
        expect(await findBarriers(page, colorScheme === "dark")).toEqual([]);
      }
    });
  });

  it("lets a phone search, and closes the list when a call is chosen", async () => {
    const page = await open("", widths.phone);
    expect(await search(page).isVisible()).toBe(false);
    await page.getByRole("button", { name: "Menu" }).click();
    await search(page).fill("encapsulate");
    await page.locator("#menu").getByRole("link", { name: "Encapsulate" }).first().click();
    await page.getByRole("heading", { level: 1, name: "Encapsulate" }).waitFor();
    await search(page).waitFor({ state: "hidden" });
  });
});
