/** The console's key manager in a real browser. */
import type { Locator, Page, Route } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { textOf } from "./browser.ts";
import { expectFits, viewports } from "./expect-fits.ts";
import { callKms, describeInBrowser, meddle, openStory } from "./telling.ts";

describeInBrowser("the console's key manager", (stage) => {
  const call = (path: string, body: object) => callKms(stage(), path, body);
  const page = openStory(stage, "keys/manage");
  /** Creates a key, and shows it in the list. */
  const addKey = async (name: string) => {
    await call("create-key", { name });
    await page().reload();
  };

  it("explains how to create the first key", async () => {
    await meddle(page(), "kms.KmsService/ListKeys", () => ({ keys: [] }));
    await page().reload();
    expect(await textOf(page().getByText("There are no keys yet."))).toContain("press Create");
  });

  it("creates a named key and selects it, unless its name is taken", async () => {
    const labels = "team=payments, stage=live";
    await createKey(page(), { Name: "release/signing", Labels: labels, "Rotate every": "90" });
    await page().getByRole("heading", { level: 2, name: "release/signing version 1, primary" }).waitFor();
    expect(await textOf(rowOf(page(), "release/signing"))).toMatch(/ML-DSA-65[\s\S]*ACTIVE/);
    const facts = /every 90 days\s+Labels\s+stage=live, team=payments/;
    expect(await textOf(page().locator(".panel .facts-list"))).toMatch(facts);
    await createKey(page(), { Name: "release/signing" });
    expect(await textOf(page().getByRole("alert"))).toContain("NAME_TAKEN");
  });

  it("creates a key once if the answer is lost and the reader repeats the call", async () => {
    const lose = async (route: Route): Promise<void> => {
      await route.fetch();
      // A proxy answers instead.
      await route.fulfill({ status: 429 });
    };
    await page().route("**/kms.KmsService/CreateKey", lose, { times: 1 });
    await createKey(page(), { Name: "lost" });
    expect(await textOf(page().getByRole("alert"))).toContain("UNAVAILABLE");
    await page().getByRole("button", { name: "Create", exact: true }).click();
    await page().getByRole("heading", { level: 2, name: "lost version 1, primary" }).waitFor();
  });

  it("rotates a key and shows both versions", async () => {
    await addKey("turned");
    await choose(page(), "turned");
    const effect = "A new version signs from now on; this one only verifies.";
    expect(await textOf(actionOf(page(), "Rotate"))).toContain(effect);
    expect(await act(page(), "Rotate")).toBe("Version 2 signs from now on.");
    const versions = page().getByRole("list", { name: "Versions" });
    await expect.poll(() => versions.locator("li").allInnerTexts()).toHaveLength(2);
    await expect.poll(() => textOf(factOf(page(), "Status"))).toContain("ROTATED");
    await versions.getByRole("link", { name: "version 2, primary" }).click();
    await page().getByRole("heading", { level: 2, name: "turned version 2, primary" }).waitFor();
    const row = await textOf(rowOf(page(), "turned"));
    expect(row).toContain("version 2, primary, and 1 other version");
  });

  it("disables, enables, schedules destruction, and restores", async () => {
    await createKey(page(), { Name: "life" });
    for (const [action, status] of [
      ["Disable", "DISABLED"],
      ["Enable", "ACTIVE"],
      ["Destroy after 30 days", "DESTROY_SCHEDULED"],
      ["Restore", "DISABLED"],
    ] as const) {
      expect(await act(page(), action)).toBe(`The key is ${status}.`);
      await expect.poll(() => textOf(factOf(page(), "Status"))).toContain(status);
      await expect.poll(() => textOf(rowOf(page(), "life"))).toContain(status);
    }
  });

  it("destroys now only after a confirmation that names what is lost", async () => {
    await createKey(page(), { Name: "doomed", Usage: "ENCRYPT" });
    const end = page().locator(".final");
    await end.locator("summary").click();
    const loss = /All data that is encrypted with it is lost[\s\S]*Calls with name\/doomed fail/;
    expect(await textOf(end)).toMatch(loss);
    await end.locator("summary").click();
    expect(await textOf(factOf(page(), "Status"))).toContain("ACTIVE");
    await end.locator("summary").click();
    await end.getByRole("button", { name: "Destroy it permanently" }).click();
    await expect.poll(() => textOf(factOf(page(), "Status"))).toContain("DESTROYED");
    expect(await page().locator(".actions button").count()).toBe(0);
  });

  it("shows the refusal of a change that became impossible", async () => {
    await createKey(page(), { Name: "raced" });
    await page().getByRole("heading", { level: 2, name: "raced" }).waitFor();
    await call("disable-key", { keyId: "name/raced" });
    await actionOf(page(), "Rotate").getByRole("button").click();
    expect(await textOf(page().getByRole("alert"))).toContain("KEY_STATE_INVALID");
    await expect.poll(() => textOf(factOf(page(), "Status"))).toContain("DISABLED");
    expect(await actionOf(page(), "Enable").count()).toBe(1);
  });

  it("marks a key whose record was modified outside the service", async () => {
    await call("create-key", {});
    await meddle(page(), "kms.KmsService/ListKeys", (list) => {
      const [{ keyId } = { keyId: "" }, ...others] = list.keys as { keyId: string }[];
      return { ...list, keys: [{ keyId, damaged: true }, ...others] };
    });
    await page().reload();
    await page().getByRole("region", { name: "Keys" }).getByText("DAMAGED").waitFor();
  });

  it("grants a key to a user and revokes the grant", async () => {
    await createKey(page(), { Name: "shared" });
    await page().getByText("No other user may use this key.").waitFor();
    await page().getByText("Grant this key to another user").click();
    await page().getByLabel("User", { exact: true }).fill("build-server");
    await page().getByLabel("SIGN", { exact: true }).check();
    await page().getByLabel("End (UTC, optional)").fill("2099-01-02T03:04");
    await page().getByRole("button", { name: "Grant", exact: true }).click();
    const grants = page().getByRole("list", { name: "Grants" });
    const described = /build-server\s+may SIGN with all versions\s+until 2099-01-02 03:04 UTC/;
    expect(await textOf(grants.locator("li"))).toMatch(described);
    expect(await page().getByLabel("User", { exact: true }).inputValue()).toBe("");
    expect(await page().getByLabel("SIGN", { exact: true }).isChecked()).toBe(false);
    await grants.getByRole("button", { name: "Revoke" }).click();
    await page().getByText("No other user may use this key.").waitFor();
  });

  it("has no accessibility violations and does not scroll sideways with the longest values", async () => {
    const name = "n".repeat(240);
    const labels = { ["l".repeat(63)]: "v".repeat(255) };
    const { result } = await call("create-key", { name, alias: "a".repeat(255), labels });
    await page().goto(`${stage().server.url}/#/keys/manage?key=${result.keyId}`);
    await page().getByRole("heading", { level: 2, name }).waitFor();
    for (const size of ["desk", "phone"] as const) await expectFits(page(), size);
  });

  it("creates a key by keyboard alone", async () => {
    await page().locator("summary", { hasText: "Create a key" }).press("Enter");
    await page().keyboard.press("Tab");
    await page().keyboard.type("typed");
    await page().keyboard.press("Enter");
    await page().getByRole("heading", { level: 2, name: "typed" }).waitFor();
  });

  for (const size of ["desk", "phone"] as const)
    it(`moves the focus to the selected key and back, on a ${size}`, async () => {
      const focused = () => page().evaluate<string>("document.activeElement.innerText");
      await page().setViewportSize(viewports[size]);
      onTestFinished(() => page().setViewportSize(viewports.desk));
      const name = `key-on-a-${size}`;
      await addKey(name);
      const link = rowOf(page(), name).getByRole("link");
      await link.press("Enter");
      await expect.poll(focused).toBe(`${name} version 1, primary`);
      expect(await link.isVisible()).toBe(size === "desk");
      await page().getByRole("link", { name: "All keys" }).press("Enter");
      await expect.poll(focused).toBe(name);
      expect(await link.isVisible()).toBe(true);
    });

  it("leaves out minor columns while a key is open, and cuts none", async () => {
    await page().setViewportSize(viewports.desk);
    await addKey("narrow");
    await choose(page(), "narrow");
    const table = page().getByRole("region", { name: "Keys" });
    expect(await table.getByRole("columnheader").allInnerTexts()).toEqual(["Key", "Algorithm", "Status"]);
    expect(await table.evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
  });
});

describeInBrowser("the console's key manager, with more keys than fit on a page", (stage) => {
  const page = openStory(stage, "keys/manage");

  it("loads the others, and searches them", async () => {
    await callKms(stage(), "create-key", { name: "sought", labels: { team: "payments" } });
    // More at once would exceed the limit on a caller's calls in progress.
    for (let batch = 0; batch < 51; batch += 1)
      await Promise.all(
        Array.from({ length: 10 }, () => callKms(stage(), "create-key", { alias: `many ${batch}` })),
      );
    await page().reload();
    const rows = page().getByRole("region", { name: "Keys" }).locator("tbody tr");
    await page().getByText("The search covers the first 500.").waitFor();
    const before = await rows.count();
    await page().getByRole("button", { name: "Load more keys" }).click();
    await expect.poll(() => rows.count()).toBeGreaterThan(before);
    await page().getByLabel("Search").fill("PAYMENTS sought");
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining("sought")]);
  });
});

function rowOf(page: Page, name: string): Locator {
  const row = page.getByRole("region", { name: "Keys" }).locator("tbody tr");
  return row.filter({ has: page.getByRole("link", { name, exact: true }) }).first();
}

function actionOf(page: Page, label: string): Locator {
  return page.locator(".actions > li", { has: page.getByRole("button", { name: label, exact: true }) });
}

function factOf(page: Page, name: string): Locator {
  return page.locator(".panel .facts-list > div", { hasText: name }).first();
}

/** Selects the first key with this name. */
async function choose(page: Page, name: string): Promise<void> {
  await rowOf(page, name).getByRole("link").click();
  await page.locator(".panel .facts-list").waitFor();
}

/** Creates a key; fields are given by the start of their labels. */
async function createKey(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  await page.locator("summary", { hasText: "Create a key" }).click();
  for (const [label, value] of Object.entries(fields)) {
    const field = page
      .locator(".create")
      .first()
      .getByLabel(new RegExp(`^${label}`));
    await (label === "Algorithm" || label === "Usage" ? field.selectOption(value) : field.fill(value));
  }
  await page.getByRole("button", { name: "Create", exact: true }).click();
}

/**
 * Presses an action's button.
 *
 * @returns the sentence that describes the result
 */
async function act(page: Page, label: string): Promise<string> {
  await actionOf(page, label).getByRole("button").click();
  return textOf(page.locator(".panel .outcome:not(:empty)"));
}
