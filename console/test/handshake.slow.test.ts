import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { startServer } from "../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../test/support/temporary-directory.ts";
import { writeRecording } from "../page/views/handshake/recording.ts";
import { textOf, type Visit, visit } from "./browser.ts";
import { goRecordings } from "./handshake/recordings.ts";
import { describeInBrowser } from "./telling.ts";

describeInBrowser("the handshake page", (stage) => {
  async function open(url = stage().server.url): Promise<Visit> {
    const visited = await visit(stage().browser, url, "handshake", {
      ignoreHTTPSErrors: true,
      viewport: { width: 1440, height: 900 },
    });
    onTestFinished(() => visited.page.context().close());
    await visited.page.locator(".flown").first().waitFor();
    return visited;
  }

  const upload = (page: Page, buffer: Buffer) =>
    page.locator("input[type=file]").setInputFiles({ name: "x", mimeType: "application/json", buffer });
  const titlesOf = (page: Page) =>
    page.locator(".flown-head button").evaluateAll((all) => all.map((one) => one.lastChild?.textContent));

  it("records a handshake, decrypts it, and verifies its signatures", async () => {
    const { page, complaints, foreign } = await open();
    const shares = page.locator(".compared");
    const clients = "1,216 = 1,184 ML-KEM-768 encapsulation key ‖ 32 X25519";
    expect(await shares.first().innerText()).toContain(clients);
    expect(await shares.last().innerText()).toContain("1,120 = 1,088 ML-KEM-768 ciphertext ‖ 32 X25519");
    await page.getByLabel("Certificate", { exact: true }).selectOption("ML-DSA-65");
    await expect
      .poll(() => textOf(page.locator(".findings")))
      .toMatch(/verified the signature, with @noble\/post-quantum/);
    expect(await page.evaluate("document.documentElement.scrollHeight")).toBeLessThanOrEqual(2500);
    await page.getByLabel("Key exchange").selectOption("P-384");
    const share = "Client’s share 97 UncompressedPointRepresentation";
    await expect.poll(() => shares.first().innerText()).toBe(share);
    expect([complaints, foreign]).toEqual([[], []]);
  });

  it("works by keyboard: a field, a byte, and a flipped bit", async () => {
    const { page } = await open();
    await page.getByRole("button", { name: "Server to client: Finished" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: /^verify_data/ }).focus();
    await page.keyboard.press("Enter");
    expect(await textOf(page.locator(".byte-panel h3"))).toBe("verify_data 48 bytes");
    await page.getByRole("slider").focus();
    await page.keyboard.press("ArrowRight");
    await page.getByText("Byte 10 of record 7").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await expect.poll(() => textOf(page.locator(".findings"))).toContain("The client stops: Finished");
    expect(await textOf(page.locator(".answer"))).toContain("The client sends the alert decrypt_error");
  });

  it("explains a recording of a different program, and does not compare it with an earlier one's size", async () => {
    const { page } = await open();
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
    const isClassical = (body: string | null) => body?.includes('"X25519"') === true;
    await page.route("**/pqc.PqcService/RecordHandshake", async (route) => {
      if (isClassical(route.request().postData())) await isReleased;
      await route.continue();
    });
    const [asked] = await Promise.all([
      page.waitForRequest((request) => isClassical(request.postData())),
      page.getByRole("button", { name: "Record a new one" }).click(),
    ]);
    const [, retried] = goRecordings;
    await upload(page, Buffer.from(writeRecording(retried?.recording ?? { records: [], keyLog: "" })));
    await expect
      .poll(() => titlesOf(page))
      .toEqual(expect.arrayContaining(["HelloRetryRequest", "CertificateRequest"]));
    expect(await textOf(page.locator(".findings"))).toContain("checks of both ends hold");
    release();
    await (await asked.response())?.finished();
    await page.evaluate("fetch('/').then((response) => response.text())");
    expect(await textOf(page.locator(".telling"))).not.toContain("X25519 alone");
  });

  it("saves the recording in a form that it opens, and keeps it if a file is unreadable", async () => {
    const { page } = await open();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save it" }).click(),
    ]);
    const ownSize = /^3,\d{3} bytes in 13 records: X25519MLKEM768/;
    await upload(page, readFileSync(await download.path()));
    await expect.poll(() => textOf(page.locator(".telling"))).toMatch(ownSize);
    await upload(page, Buffer.from("hello"));
    expect(await textOf(page.getByRole("alert"))).toContain("The file is not JSON.");
    expect(await textOf(page.locator(".telling"))).toMatch(ownSize);
  });

  it("describes the visitor's connection", async () => {
    const { page } = await open();
    expect(await textOf(page.locator(".opening"))).toContain("This page came over plain HTTP");
    const own = makeTemporaryDirectory();
    for (const args of [["init"], ["issue", "localhost", "127.0.0.1"]])
      execFileSync(join(import.meta.dirname, "../../qsp"), ["ca", ...args, "--data-dir", own]);
    const files = ["--tls-cert", join(own, "tls/gateway.crt"), "--tls-key", join(own, "tls/gateway.key")];
    const secure = await startServer({ dataDir: makeTemporaryDirectory(), args: files });
    onTestFinished(async () => void (await secure.stop()));
    const overTls = await open(secure.url);
    await expect.poll(() => textOf(overTls.page.locator(".opening"))).toContain("TLS 1.3, X25519MLKEM768");
  });
});
