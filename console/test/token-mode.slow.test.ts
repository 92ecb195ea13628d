import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { createUserStore, type UserRole } from "../../src/identity/users.ts";
import { inheritedEnvironment } from "../../test/support/environment.ts";
import { makeSqlitePlace, type Place } from "../../test/support/on-both.ts";
import { hashCheaply, password } from "../../test/support/passwords.ts";
import { runHere } from "../../test/support/run-here.ts";
import { type RunningServer, startServer } from "../../test/support/start-server.ts";
import { checksOf, openBrowser, runStep, runStory, textOf, visitIn } from "./browser.ts";
import { describeIfBrowser, requestToken } from "./telling.ts";

let place: Place;
let server: RunningServer;
let browser: Browser;
/** For tabs that share the console's files; each has its own session. */
let context: BrowserContext;

const users: Readonly<Record<string, UserRole>> = { ada: "user", grace: "auditor", eve: "user", kim: "user" };

async function open(path: string): Promise<Page> {
  const { page, complaints, foreign } = await visitIn(context, server.url, path);
  onTestFinished(async () => {
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    await page.close();
  });
  return page;
}

async function logIn(page: Page, username: string, typed = password): Promise<void> {
  await page.getByLabel("User").fill(username);
  await page.getByLabel("Password").fill(typed);
  await page.getByRole("button", { name: "Log in" }).click();
}

async function openAs(username: string, path: string): Promise<Page> {
  const page = await open(path);
  await logIn(page, username);
  await page.locator("li.step").first().waitFor();
  return page;
}

const logOut = (page: Page) => page.getByRole("button", { name: "Log out" });
/** Waits for a page with this title. */
const waitForPage = (page: Page, name: string) => page.getByRole("heading", { level: 1, name }).waitFor();

describeIfBrowser("the console of a server with users", () => {
  beforeAll(async () => {
    place = await makeSqlitePlace(afterAll);
    const store = await place.open({ atEnd: afterAll });
    for (const [name, role] of Object.entries(users))
      await createUserStore(store).add({ name, role, passwordHash: hashCheaply(password) }, new Date());
    await store.close();
    server = await startServer({ dataDir: place.directory, args: ["--auth", "token"] });
    browser = await openBrowser();
    context = await browser.newContext();
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  it("signs in the browser without a token, and on the server after the log-in", async () => {
    const page = await open("");
    await expect.poll(() => page.locator(".verdicts").innerText()).toBe("Server not asked\nBrowser valid");
    expect(await textOf(page.locator(".signed"))).toContain("signed in your browser");
    await page.getByRole("button", { name: "Flip one bit" }).click();
    await expect.poll(() => textOf(page.locator(".telling"))).toContain("Your browser rejects");
    await page.getByRole("navigation").getByRole("link", { name: "Log in" }).click();
    await logIn(page, "ada");
    await expect.poll(() => page.locator(".verdicts").innerText()).toBe("Server valid\nBrowser valid");
    expect(await textOf(page.locator(".signed"))).toContain("signed by this server");
    await page.goBack();
    await page.locator(".verdicts").waitFor();
  });

  it("takes over only a token that the server accepts, and needs no log-in page then", async () => {
    const token = await requestToken(server.url, { username: "eve", password });
    const [header, , signature] = token.split(".");
    const forged = [header, Buffer.from('{"sub":"ada","exp":9999999999}').toString("base64url"), signature];
    const page = await open("log-in");
    await page.getByText("Use an existing token").click();
    const use = page.getByRole("button", { name: "Use the token" });
    await page.getByLabel("Token").fill("hunter2");
    await use.click();
    expect(await textOf(page.getByRole("alert"))).toContain("three base64url parts");
    await page.getByLabel("Token").fill(forged.join("."));
    await use.click();
    expect(await textOf(page.getByRole("alert"))).toContain("The server does not accept this token.");
    await page.getByLabel("Token").fill(`Bearer ${token}\n`);
    await use.click();
    await logOut(page).waitFor();
    await page.goto(`${server.url}/#/log-in`);
    await page.locator(".verdicts").waitFor();
  });

  it("shows the algorithms to everyone, the activity to auditors, and explains to others why they see none", async () => {
    const page = await open("algorithms");
    await page.locator(".algorithms tbody tr").first().waitFor();
    expect(await textOf(page.locator(".note"))).toContain("Log in to measure times");
    await page.goto(`${server.url}/#/activity`);
    expect(await textOf(page.getByRole("alert"))).toContain("TOKEN_MISSING");
    await page.locator("main").getByRole("link", { name: "Log in" }).click();
    await logIn(page, "ada");
    await logOut(page).waitFor();
    await page.goto(`${server.url}/#/activity`);
    expect(await textOf(page.getByRole("alert"))).toContain("ROLE_MISSING");
    const auditor = await open("log-in");
    await logIn(auditor, "grace");
    await logOut(auditor).waitFor();
    await auditor.goto(`${server.url}/#/activity`);
    await auditor.getByText("Calls per second").waitFor();
  });

  it("asks visitors of a story to log in, and continues there after the right password", async () => {
    const page = await open("sign");
    await waitForPage(page, "Log in");
    expect(await page.title()).toBe("Log in – Quantum-Safe Playground");
    await logIn(page, "ada", "not the password");
    expect(await textOf(page.getByRole("alert"))).toContain("LOGIN_FAILED");
    await logIn(page, "ada");
    await waitForPage(page, "Sign and verify");
    expect(await page.title()).toBe("Sign and verify – Quantum-Safe Playground");
    // The button that had the focus was removed.
    expect(await page.evaluate("document.activeElement.id")).toBe("main");
    expect((await runStory(page))[0]).toContain("3,309 bytes");
  });

  it.each([
    // Uses its own token, so the user who registered it need not share theirs.
    ["devices", "The server accepts reading 1: 17 bytes, with a signature of 2,420 bytes."],
    ["tunnel", "The tunnel is REMOVED. A packet for it is refused: TUNNEL_NOT_FOUND."],
    ["keys", "The server refuses this to your role: ROLE_MISSING."],
    ["governance", "The proposal is EXECUTED. A second attempt is refused: PROPOSAL_EXECUTED."],
  ])("shows the story %s to a user", async (path, outcome) => {
    expect(await runStory(await openAs("ada", path))).toContain(outcome);
  });

  it("keeps the token for the tab only, and drops it and the stories' state at log-out", async () => {
    const page = await openAs("ada", "sign");
    await page.reload();
    await waitForPage(page, "Sign and verify");
    await waitForPage(await open("sign"), "Log in");
    await runStep(page, "Sign a message");
    await page.getByRole("link", { name: "Key exchange" }).click();
    await waitForPage(page, "Key exchange");
    await logOut(page).click();
    await waitForPage(page, "Log in");
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
    await logIn(page, "grace");
    await waitForPage(page, "Key exchange");
    await page.getByRole("link", { name: "Sign and verify" }).click();
    await waitForPage(page, "Sign and verify");
    expect(await page.locator("li.step[data-status=done]").count()).toBe(0);
  });

  it("makes no call for one user's step with the next user's token", async () => {
    const page = await openAs("ada", "keys");
    await runStep(page, "Create a key");
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
    await page.route("**/kms.KmsService/Sign", async (route) => {
      await isReleased;
      await route.continue();
    });
    const calls: string[] = [];
    page.on("request", (request) => calls.push(request.url()));
    await page.getByRole("button", { name: "Sign and verify", exact: true }).click();
    await logOut(page).click();
    await logIn(page, "grace");
    await page.locator("li.step").first().waitFor();
    const answer = page.waitForResponse("**/kms.KmsService/Sign");
    release();
    await (await answer).finished();
    // The page handles the answer before the answer to a later request.
    await page.evaluate("fetch('/').then((response) => response.text())");
    expect(calls.filter((url) => url.endsWith("/Verify"))).toEqual([]);
  });

  it("shows a user's records in the inventory, and none of them to the next user", async () => {
    const page = await openAs("ada", "wallets");
    await runStep(page, "Create a wallet");
    await page.getByRole("link", { name: "Inventory" }).click();
    const records = page.getByRole("region", { name: "Records" });
    expect(await textOf(records)).toMatch(/Savings\s+wallet/);
    await logOut(page).click();
    await logIn(page, "grace");
    await page.getByRole("button", { name: "Wallets 0", exact: true }).click();
    expect(await textOf(page.locator(".note"))).toContain("None yet.");
  });

  it("asks for a log-in once the server no longer accepts the token", async () => {
    const page = await openAs("kim", "sign");
    const args = ["user", "remove", "kim", "--data-dir", place.directory];
    expect(await runHere(args, { env: inheritedEnvironment() })).toMatchObject({ code: 0 });
    await page.getByRole("button", { name: "Sign", exact: true }).click();
    await waitForPage(page, "Log in");
  });

  it("decodes a token that was issued for a password", async () => {
    const page = await openAs("ada", "tokens");
    await page.getByLabel("Password").fill(password);
    await runStory(page);
    expect(await page.content()).not.toContain(password);
    expect(await page.content()).toContain("(your password)");
    expect(await checksOf(page, "Forge it")).toEqual(["browser: not valid", "server: not valid"]);
  });

  it("lets a user without the auditor role manage and grant keys, and read their entries", async () => {
    const page = await open("keys/manage");
    await logIn(page, "ada");
    await page.locator("summary", { hasText: "Create a key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("mine");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    // The form moves down once the grants are loaded.
    await page.getByText("No other user may use this key.").waitFor();
    await page.getByText("Grant this key to another user").click();
    await page.getByLabel("User", { exact: true }).fill("nobody");
    await page.getByLabel("SIGN", { exact: true }).check();
    await page.getByRole("button", { name: "Grant", exact: true }).click();
    expect(await textOf(page.getByRole("alert"))).toContain("User: user or client nobody does not exist");
    await page.getByLabel("User", { exact: true }).fill("grace");
    await page.getByRole("button", { name: "Grant", exact: true }).click();
    expect(await textOf(page.getByRole("list", { name: "Grants" }))).toContain("grace");
    await page.getByRole("link", { name: "All versions" }).click();
    const rows = page.getByRole("region", { name: "Entries" }).locator("tbody tr");
    const operations = ["CREATE_GRANT", "CREATE_GRANT", "CREATE"];
    await expect
      .poll(() => rows.allInnerTexts())
      .toEqual(operations.map((operation) => expect.stringContaining(operation)));
  });
});
