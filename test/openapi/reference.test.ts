import { type Browser, chromium, type Locator, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacksBrowser, needsBrowser } from "../console/browser.ts";
import { type ApiServer, startApi } from "./api-server.ts";
import { listOperations } from "./call-examples.ts";

describe.skipIf(lacksBrowser)(`the reference page in a browser${needsBrowser}`, { timeout: 60_000 }, () => {
  let api: ApiServer;
  let browser: Browser;
  let page: Page;
  /** What the browser wrote to its console as an error, a broken Content-Security-Policy included. */
  const complaints: string[] = [];
  const requested: string[] = [];
  const ends: (() => void | Promise<void>)[] = [];

  beforeAll(async () => {
    api = await startApi("open", (end) => void ends.push(end));
    browser = await chromium.launch({ executablePath: "/usr/bin/chromium" });
    page = await browser.newPage({ viewport: { width: 1200, height: 1600 } });
    page.on("console", (message) => void (message.type() === "error" && complaints.push(message.text())));
    page.on("pageerror", (error) => void complaints.push(error.message));
    page.on("request", (request) => void requested.push(request.url()));
    await page.goto(`${api.url}/reference`);
    await page.locator(".opblock").first().waitFor();
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    for (const end of ends.reverse()) await end();
  });

  const operation = (id: string): Locator => page.locator(`.opblock[id$="-${id}"]`);

  it("lists every operation", async () => {
    expect(await page.locator(".opblock").count()).toBe(listOperations(api.document).length);
  });

  it("makes a call of an example, and shows its answer", async () => {
    const hello = operation("pqc_TokenService_Hello");
    await hello.locator(".opblock-summary-control").click();
    await hello.getByRole("button", { name: "Try it out" }).click();
    await hello.getByRole("button", { name: "Execute" }).click();
    await hello.locator(".live-responses-table .response-col_status", { hasText: "200" }).waitFor();
    expect(await hello.locator(".live-responses-table").textContent()).toContain('"status": "success"');
  });

  it("shows the body of an example", async () => {
    const sign = operation("pqc_PqcService_SignData");
    await sign.locator(".opblock-summary-control").click();
    await sign.getByText('"aGVsbG8="').first().waitFor();
    expect(await sign.locator(".opblock-section-request-body").textContent()).toContain(
      '"algorithm": "ML-DSA-65"',
    );
  });

  it("asks nobody but the server for anything", () => {
    expect(requested.length).toBeGreaterThan(5);
    expect(requested.filter((url) => !url.startsWith(`${api.url}/`) && !url.startsWith("data:"))).toEqual([]);
  });

  it("breaks no rule of its own Content-Security-Policy, and throws nothing", () => {
    expect(complaints).toEqual([]);
  });
});
