/** The console's audit log in a real browser. */
import { beforeAll, expect, it } from "vitest";
import { textOf } from "./browser.ts";
import { callKms, describeInBrowser, meddle, openStory } from "./telling.ts";

describeInBrowser("the console's audit log", (stage) => {
  const call = (path: string, body: object) => callKms(stage(), path, body);
  const sign = (name: string) => call("sign", { keyId: `name/${name}`, data: "aGVsbG8=" });

  beforeAll(async () => {
    for (const name of ["release", "life", "raced", "shared"]) await call("create-key", { name });
    for (const name of ["life", "raced"]) await call("disable-key", { keyId: `name/${name}` });
    await call("rotate-key", { keyId: "name/raced" });
    await sign("release");
  }, 180_000);

  const page = openStory(stage, "keys/audit");
  const rows = () => page().getByRole("region", { name: "Entries" }).locator("tbody tr");
  const openFor = (query: string) => page().goto(`${stage().server.url}/#/keys/audit?key=name/${query}`);
  const press = (name: string) => page().getByRole("button", { name }).click();
  const follow = async () => {
    await press("Follow new entries");
    await page().getByRole("button", { name: "Stop watching" }).waitFor();
  };

  it("filters by name, outcome, user and time", async () => {
    await page().getByLabel("Key ID or name").fill("raced");
    await page().getByLabel("Outcome").selectOption("REFUSED");
    await press("Search");
    await expect
      .poll(() => rows().allInnerTexts())
      .toEqual([expect.stringMatching(/ROTATE[\s\S]*REFUSED[\s\S]*system[\s\S]*KEY_STATE_INVALID/)]);
    await page().getByLabel("Caller").fill("nobody");
    await press("Search");
    await page().getByText("No entries match.").waitFor();
    await page().getByLabel("Caller").fill("");
    await press("Search");
    await expect.poll(() => rows().count()).toBe(1);
    await page().getByLabel("Period").selectOption("From … to …");
    await page().getByLabel("To (UTC)").fill("2020-01-01T00:00");
    await press("Search");
    await page().getByText("No entries match.").waitFor();
  });

  it("opens with the entries of the key shown in the manager", async () => {
    await openFor("raced");
    const operations = ["ROTATE", "DISABLE", "CREATE"];
    await expect
      .poll(() => rows().allInnerTexts())
      .toEqual(operations.map((operation) => expect.stringContaining(operation)));
  });

  it("prepends entries when they are written", async () => {
    await openFor("release");
    await expect.poll(() => rows().count()).toBeGreaterThan(1);
    const before = await rows().count();
    await follow();
    await sign("release");
    await expect.poll(() => rows().count()).toBe(before + 1);
    expect(await textOf(rows().first())).toMatch(/SIGN[\s\S]*input=data/);
    expect(await page().getByRole("button", { name: "Follow new entries" }).count()).toBe(0);
    await press("Stop watching");
    await page().getByText("No longer following the log").waitFor();
  });

  it("shows no answer of a search with other filters", async () => {
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
    await page().route("**/kms.KmsService/GetAuditLog", async (route) => {
      await isReleased;
      await route.continue();
    });
    const answer = page().waitForResponse("**/kms.KmsService/GetAuditLog");
    await openFor("life");
    await page().getByLabel("Outcome").selectOption("REFUSED");
    await follow();
    release();
    await (await answer).finished();
    await page().evaluate("fetch('/').then((response) => response.text())");
    await call("sign", { keyId: "name/life", data: "aGVsbG8=" }).catch(() => {});
    await expect.poll(() => rows().allInnerTexts()).toEqual([expect.stringMatching(/SIGN[\s\S]*REFUSED/)]);
  });

  it("continues what it followed before with other filters", async () => {
    await openFor("release");
    await expect.poll(() => rows().count()).toBeGreaterThan(1);
    await page().getByLabel("Operation").selectOption("SIGN");
    for (const count of [1, 2]) {
      await follow();
      await sign("release");
      await expect.poll(() => rows().count()).toBe(count);
      await press("Stop watching");
    }
  });

  it("keeps the newest 500 entries of a flood", async () => {
    await openFor("shared");
    await page().getByText("entries, newest first").waitFor();
    await follow();
    await call("batch-sign", { keyId: "name/shared", data: Array(600).fill("aGVsbG8=") });
    await expect.poll(() => rows().count()).toBe(500);
  });

  it("shows all fields of an entry, and that its hash follows from them", async () => {
    await openFor("release");
    await rows().last().getByRole("link").first().click();
    const panel = page().locator(".panel");
    expect(await textOf(panel.locator(".checks"))).toMatch(/hash of entry 0\s+Your browser valid/);
    const facts = /Client address\s+127\.0\.0\.1[\s\S]*algorithm\s+ML-DSA-65\s+usage\s+SIGN/;
    expect(await textOf(panel.locator(".facts-list"))).toMatch(facts);
    await panel.getByRole("link", { name: "All entries" }).press("Enter");
    await expect.poll(() => page().evaluate("document.activeElement.innerText")).toBe("1");
  });

  it("shows that an entry was changed on its way", async () => {
    await meddle(page(), "kms.KmsService/GetAuditLog", (list) => ({
      ...list,
      auditLog: (list.auditLog as object[]).map((entry) => ({ ...entry, user: "eve" })),
    }));
    await openFor("life&entry=2");
    await page().reload();
    expect(await textOf(page().locator(".panel .checks"))).toContain("not valid");
  });

  it("verifies the whole log, and its checkpoint in the browser", async () => {
    await press("Verify the whole log");
    await page().getByText("finds the log unchanged").waitFor();
    expect(await textOf(page().locator(".checks li").first())).toMatch(/every link[\s\S]*valid/);
    await page().route("**/kms.KmsService/WatchAuditVerification", (route) => route.fulfill({ status: 403 }));
    await press("Verify the whole log");
    await page().getByRole("alert").waitFor();
    // The failure does not stand next to an earlier finding.
    expect(await page().getByText("finds the log unchanged").count()).toBe(0);
  });
});
