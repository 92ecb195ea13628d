/** Stories in a real browser: what only a page can get wrong. page.slow.test.ts plays each one to its end. */
import { describe, expect, it } from "vitest";
import { checksOf, runStep, runStory, stepOf, textOf } from "./browser.ts";
import { callKms, describeInBrowser, openStory, runSteps } from "./telling.ts";

describeInBrowser("the console's stories", (stage) => {
  describe("sign and verify", () => {
    const page = openStory(stage, "sign");

    it("folds finished steps to their results, and stops running them at a failure", async () => {
      const body = JSON.stringify({ code: "resource_exhausted", message: "busy" });
      await page().route("**/pqc.PqcService/VerifySignature*", (route) =>
        route.fulfill({ status: 429, contentType: "application/json", body }),
      );
      await page().getByRole("button", { name: "Run all" }).click();
      const refused = stepOf(page(), "Verify it on both sides").getByRole("alert");
      expect(await textOf(refused)).toContain("RESOURCE_EXHAUSTED");
      await page().getByRole("button", { name: "Run all" }).waitFor();
      expect(await page().locator("li.step[data-status=done]").count()).toBe(1);
      const signed = stepOf(page(), "Sign a message");
      expect(await signed.locator(".why, .act, .result").filter({ visible: true }).count()).toBe(0);
      expect(await textOf(signed.locator(".outcome"))).toContain("3,309 bytes");
    });

    it("locks later steps until earlier ones are done, and resets them when one is repeated", async () => {
      const verifying = stepOf(page(), "Verify it on both sides");
      expect(await textOf(verifying)).toContain("Complete the steps above first.");
      await runStory(page());
      expect(await textOf(verifying)).not.toContain("Complete the steps above first.");
      await stepOf(page(), "Sign a message").locator(".fold").click();
      await page().getByLabel("Message", { exact: true }).fill("another");
      await runStep(page(), "Sign a message");
      await expect.poll(() => page().locator("li.step[data-status=ready]").count()).toBe(4);
    });
  });

  describe("managed keys", () => {
    const page = openStory(stage, "keys");
    const entries = () => page().locator(".chain ol > li");

    it("show the live audit chain, with each hash recomputed, and the key in its diagram", async () => {
      await runSteps(page(), "Watch the audit log", "Create a key");
      await expect.poll(() => textOf(entries().first())).toContain("CREATE");
      await runSteps(page(), "Sign with it", "Rotate it", "Destroy it");
      await expect.poll(() => textOf(entries().first())).toContain("KEY_STATE_INVALID");
      expect(await page().locator(".chain li[data-link=broken]").count()).toBe(0);
      expect(await page().locator(".chain li[data-link=holds]").count()).toBeGreaterThanOrEqual(9);
      expect(await page().locator(".lifecycle .state[data-current=true]").textContent()).toBe("● DESTROYED");
    });

    it("do not watch while the reader is elsewhere, and catch up afterwards", async () => {
      await runSteps(page(), "Watch the audit log", "Create a key");
      await expect.poll(() => textOf(entries().first())).toContain("CREATE");
      const before = await entries().count();
      const isClosed = page().waitForEvent("requestfailed", (request) =>
        request.url().endsWith("/WatchAuditLog"),
      );
      await page().getByRole("navigation").getByRole("link", { name: "Tokens" }).click();
      await isClosed;
      await callKms(stage(), "create-key", { algorithm: "ML-DSA-44" });
      await page().getByRole("navigation").getByRole("link", { name: "Managed keys" }).click();
      await expect.poll(() => entries().count()).toBe(before + 1);
    });

    it("stop watching when the reader stops them", async () => {
      await runStep(page(), "Watch the audit log");
      await page().getByRole("button", { name: "Stop watching" }).click();
      await page().getByRole("button", { name: "Stop watching" }).waitFor({ state: "detached" });
      const before = await entries().count();
      await runSteps(page(), "Create a key", "Sign with it");
      expect(await entries().count()).toBe(before);
    });
  });

  const toSession = ["Get the gateway's public keys", "Register your end", "Agree on a key"];

  describe("a tunnel", () => {
    const page = openStory(stage, "tunnel");
    it("does the next step from its bar; its diagram fills in and names the refusal of a replay", async () => {
      const diagram = page().getByRole("region", { name: "Who sends what" });
      const rows = diagram.locator(".act-row[data-status=done]");
      for (const at of [1, 2, 3, 4, 5, 6]) {
        await page()
          .getByRole("button", { name: /^Next: / })
          .click();
        await rows.nth(at - 1).waitFor();
        await page().getByText(`${at} of 11`, { exact: true }).waitFor();
      }
      const replay = rows.last().locator(".row[data-attack=true][data-verdict=bad]");
      expect(await textOf(replay)).toContain("refused: PACKET_REPLAYED");
      expect(await replay.textContent()).toContain("Mallory (attacker) to Gateway");
    });

    it("keeps the results of what its end makes impossible", async () => {
      await page().getByRole("button", { name: "Run all" }).click();
      await page().getByText("11 of 11", { exact: true }).waitFor();
      const sent = await textOf(stepOf(page(), "Send a packet").locator(".outcome"));
      await stepOf(page(), "Send a packet").locator(".fold").click();
      await stepOf(page(), "Send a packet").locator(".act button").press("Enter");
      expect(await textOf(stepOf(page(), "Send a packet").locator(".act"))).toContain(
        "“End the tunnel” is done.",
      );
      expect(await textOf(stepOf(page(), "Send a packet").locator(".outcome"))).toBe(sent);
    });

    it("continues with the newest key after each rekey", async () => {
      await runSteps(page(), ...toSession, "Replace the key", "Send a packet", "Receive a packet");
      expect(await checksOf(page(), "Receive a packet")).toEqual(["browser: valid"]);
      expect(await runStep(page(), "Replace the key")).toContain("Key 3 is in use.");
      expect(await runStep(page(), "Send a packet")).toContain("which the gateway opened");
    });

    it("leads from its diagram to the step", async () => {
      await page().getByRole("button", { name: "Agree on a key" }).first().click();
      const focused = "document.activeElement.closest('li.step')?.querySelector('h2').textContent";
      expect(await page().evaluate(focused)).toBe("Agree on a key");
    });
  });

  // A script that runs before the page stays in its tab.
  describe("a tunnel over an insecure line", () => {
    const page = openStory(stage, "tunnel");

    it("explains that the browser does not encrypt there", async () => {
      await page().addInitScript("Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined })");
      await page().reload();
      expect(await runSteps(page(), ...toSession)).toContain("ORIGIN_INSECURE");
    });
  });

  describe("a blockchain", () => {
    const page = openStory(stage, "chain");
    const verdicts = (list: string) =>
      page().getByRole("list", { name: list }).locator("> li .verdict").allInnerTexts();
    it("draws blocks with the reader's own data, and turns a changed one red in the copy only", async () => {
      await runSteps(page(), "Register a validator", "Watch the chain");
      await page().getByLabel("Block one").fill("<b>grüße</b> \u{1f511}");
      await runStep(page(), "Add blocks");
      const drawn = page().getByRole("list", { name: "The chain, as it grows" }).locator("> li");
      await drawn.locator(".said", { hasText: "<b>grüße</b> \u{1f511}" }).waitFor();
      await expect.poll(() => textOf(drawn.last())).toContain("signature valid");
      const blocks = page().getByLabel("Block", { exact: true });
      await blocks.selectOption((await blocks.locator("option").last().textContent()) ?? "");
      await page().getByLabel("The forger").selectOption("and recomputes the hash");
      await runStep(page(), "Tamper with a block in your copy");
      // A block that arrived after the reader looked has a broken link as well.
      expect((await verdicts("Your changed copy")).slice(0, 2)).toEqual(["holds", "SIGNATURE"]);
      expect(new Set(await verdicts("The chain, as it grows"))).toEqual(new Set(["holds"]));
    });
  });

  describe("a proposal", () => {
    const page = openStory(stage, "governance");

    it("offers no step again that the server would refuse", async () => {
      await runStory(page());
      expect(await page().locator(".act button[aria-disabled=true]").count()).toBe(5);
    });
  });

  describe("a verifiable log", () => {
    const page = openStory(stage, "log");

    it("proves the leaf that the reader selects", async () => {
      await runSteps(page(), "Add entries", "Read the signed root");
      await page().getByRole("button", { name: "Leaf 0" }).click();
      const outcome = stepOf(page(), "Prove that an entry is in the log").locator(".outcome:not(:empty)");
      expect(await textOf(outcome)).toContain("from leaf 0");
      expect(await page().getByRole("button", { name: "Leaf 0" }).getAttribute("aria-pressed")).toBe("true");
    });
  });
});
