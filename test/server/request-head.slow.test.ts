/** What a page of another origin can send with a browser, none of which the server may accept as a call. */
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { lacksBrowser, needsBrowser, openBrowser } from "../../console/test/browser.ts";
import { createHostCheck } from "../../src/server/request-head.ts";
import { serveCounted } from "./probe.ts";

const timeout = 180_000;

const start = () =>
  serveCounted({
    isHostAllowed: createHostCheck([], "127.0.0.1"),
    corsOrigins: ["https://console.example.com"],
  });

describe.skipIf(lacksBrowser)(`a page of another origin in Chromium${needsBrowser}`, { timeout }, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  }, timeout);
  afterAll(() => browser.close());

  /** Every way in which a page can send a request without a preflight. */
  const attacks: Readonly<Record<string, string>> = {
    "fetch without CORS, of JSON without a type": `fetch(url, { method: "POST", mode: "no-cors", body: new Blob(["{}"]) })`,
    "fetch without CORS, as text": `fetch(url, { method: "POST", mode: "no-cors", body: "{}" })`,
    "fetch with CORS": `fetch(url, { method: "POST", body: "{}", headers: { "content-type": "application/json" } })`,
    "fetch with CORS, by QUERY": `fetch(url.replace("ask", "find"), { method: "QUERY", body: "{}", headers: { "content-type": "application/json" } })`,
    beacon: `navigator.sendBeacon(url, new Blob(["{}"]))`,
    form: `const form = document.createElement("form"); form.method = "POST"; form.action = url;
      form.enctype = "text/plain"; form.target = "frame"; document.body.append(form); form.submit()`,
    "form that opens a tab": `const form = document.createElement("form"); form.method = "POST"; form.action = url;
      form.target = "_blank"; document.body.append(form); form.submit()`,
    image: `const image = new Image(); image.src = look; document.body.append(image)`,
    script: `const script = document.createElement("script"); script.src = look; document.body.append(script)`,
    frame: `document.querySelector("iframe").src = look`,
    "opened tab": `window.open(look)`,
    preload: `const link = document.createElement("link"); link.rel = "prefetch"; link.href = look; document.head.append(link)`,
  };

  it.each(Object.entries(attacks))("makes no call: %s", async (_, script) => {
    const { port, handled } = await start();
    const refused = new Set<number>();
    const page = http.createServer((_req, res) => {
      res.setHeader("content-type", "text/html").end('<!doctype html><iframe name="frame"></iframe>');
    });
    page.listen(0, "127.0.0.1");
    await once(page, "listening");
    onTestFinished(() => void page.close());
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const answered = Promise.withResolvers<void>();
    const note = (status: number): void => {
      refused.add(status);
      answered.resolve();
    };
    context.on("response", (response) => {
      if (new URL(response.url()).port === String(port)) note(response.status());
    });
    // A request without CORS shows no response to the page; Chromium reports it as finished or failed.
    context.on("requestfailed", (failed) => {
      if (new URL(failed.url()).port === String(port)) answered.resolve();
    });
    const tab = await context.newPage();
    await tab.goto(`http://localhost:${(page.address() as AddressInfo).port}/`);
    await tab.evaluate(
      `(() => { const url = "http://127.0.0.1:${port}/probe/ask", look = "http://127.0.0.1:${port}/probe/look?text=x"; ${script}; })()`,
    );
    await answered.promise;
    expect(handled()).toBe(0);
    expect([...refused].filter((status) => status < 400)).toEqual([]);
  });
});
