/** Stories in a real browser: what only a page can get wrong. page.slow.test.ts plays each one to its end. */
import { describe, expect, it } from "vitest";
import { checksOf, lacksBrowser, needsBrowser, runStep, runStory, stepOf, textOf } from "./browser.ts";
import { callKms, openStory, recordCalls, runSteps, setUpStage } from "./telling.ts";

const title = `the console's stories, in a real browser${needsBrowser}`;
describe.skipIf(lacksBrowser)(title, { timeout: 180_000 }, () => {
  const stage = setUpStage();

  describe("sign and verify", () => {
    const page = openStory(stage, "sign");

    for (const algorithm of ["ML-DSA-44", "ML-DSA-87", "SLH-DSA-SHA2-128s", "SLH-DSA-SHA2-128f"]) {
      it(`signs with ${algorithm}, and both sides find the signature valid`, async () => {
        await page().getByLabel("Algorithm").selectOption(algorithm);
        await runSteps(page(), "Sign a message", "Verify it on both sides");
        expect(await checksOf(page(), "Verify it on both sides")).toEqual([
          "server: valid",
          "browser: valid",
        ]);
      });
    }

    it("signs the reader's own message", async () => {
      await page().getByLabel("Message", { exact: true }).fill("grüße");
      await runStep(page(), "Sign a message");
      const message = stepOf(page(), "Sign a message").locator(".bytes").first();
      expect(await textOf(message.locator(".hex"))).toBe("6772 c3bc c39f 65");
    });

    it("keeps a step locked until earlier steps are done", async () => {
      const step = stepOf(page(), "Verify it on both sides");
      expect(await textOf(step)).toContain("Complete the steps above first.");
      await runStep(page(), "Sign a message");
      expect(await textOf(step)).not.toContain("Complete the steps above first.");
    });

    it("folds finished steps to their results, and stops running them at a failure", async () => {
      const body = JSON.stringify({ code: "resource_exhausted", message: "busy" });
      await page().route("**/pqc.PqcService/VerifySignature*", (route) =>
        route.fulfill({ status: 429, contentType: "application/json", body }),
      );
      await page().getByRole("button", { name: "Run all" }).click();
      await stepOf(page(), "Verify it on both sides").getByRole("alert").waitFor();
      await page().getByRole("button", { name: "Run all" }).waitFor();
      expect(await page().locator("li.step[data-status=done]").count()).toBe(1);
      const signed = stepOf(page(), "Sign a message");
      expect(await signed.locator(".why, .act, .result").filter({ visible: true }).count()).toBe(0);
      expect(await textOf(signed.locator(".outcome"))).toContain("3,309 bytes");
    });

    it("resets later steps when an earlier one is repeated", async () => {
      await runStory(page());
      await stepOf(page(), "Sign a message").locator(".fold").click();
      await page().getByLabel("Message", { exact: true }).fill("another");
      await runStep(page(), "Sign a message");
      await expect.poll(() => page().locator("li.step[data-status=ready]").count()).toBe(4);
    });

    it("shows reason and message of an unexpected failure", async () => {
      await page().getByLabel("Message", { exact: true }).fill("");
      expect(await runStep(page(), "Sign a message")).toContain("FIELD_INVALID");
    });
  });

  describe("key exchange", () => {
    const page = openStory(stage, "key-exchange");

    for (const [algorithm, publicKey, ciphertext] of [
      ["ML-KEM-512", "800", "768"],
      ["ML-KEM-1024", "1,568", "1,568"],
      ["X-Wing", "1,216", "1,120"],
    ] as const) {
      it(`ends with the same secret on both sides, with ${algorithm}`, async () => {
        await page().getByLabel("Algorithm").selectOption(algorithm);
        expect(await runStep(page(), "Your browser generates a key pair")).toContain(`${publicKey} bytes`);
        expect(await runStep(page(), "The server encapsulates a secret")).toContain(`${ciphertext} bytes`);
        await runStep(page(), "Your browser opens the ciphertext");
        expect(await checksOf(page(), "Your browser opens the ciphertext")).toEqual(["browser: equal"]);
      });
    }

    it("keeps the secret key in the page", async () => {
      const sent: string[] = [];
      page().on("request", (request) => sent.push(request.postData() ?? ""));
      await runStory(page());
      const calls = sent.filter((body) => body !== "").map((body) => JSON.parse(body));
      expect(calls.map((call) => Object.keys(call).sort())).toEqual([["algorithm", "publicKey"]]);
    });
  });

  describe("managed keys", () => {
    const page = openStory(stage, "keys");
    const entries = () => page().locator(".chain ol > li");

    it("follow the key in their diagram", async () => {
      await runStory(page());
      expect(await page().locator(".lifecycle .state[data-passed=true]").count()).toBe(4);
      expect(await page().locator(".lifecycle .state[data-current=true]").textContent()).toBe("● DESTROYED");
    });

    it("show the live audit chain, with each hash recomputed", async () => {
      await runSteps(page(), "Watch the audit log", "Create a key");
      await expect.poll(() => textOf(entries().first())).toContain("CREATE");
      await runSteps(page(), "Sign with it", "Rotate it", "Destroy it");
      await expect.poll(() => textOf(entries().first())).toContain("KEY_STATE_INVALID");
      expect(await page().locator(".chain li[data-link=broken]").count()).toBe(0);
      expect(await page().locator(".chain li[data-link=holds]").count()).toBeGreaterThanOrEqual(9);
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

  describe("a device", () => {
    const page = openStory(stage, "devices");
    const toToken = [
      "The device and its vendor generate their keys",
      "Register the device",
      "The device authenticates",
    ];
    const sending = "The device sends a reading";

    it("registers only public keys", async () => {
      const calls = recordCalls(page(), "RegisterDevice");
      await runSteps(page(), ...toToken);
      expect(calls.map((call) => Object.keys(call.postDataJSON()).sort())).toEqual([
        ["deviceName", "deviceType", "publicKey", "signingContexts", "vendorPublicKey"],
      ]);
    });

    it("sends readings and reports with its own token, and answers challenges without one", async () => {
      const answered = page().waitForResponse(/\/Authenticate$/);
      const rpcs = ["IssueChallenge", "Authenticate", "SendTelemetry", "ReportFirmware"];
      const calls = rpcs.map((rpc) => recordCalls(page(), rpc));
      await runSteps(page(), ...toToken, sending, "The vendor sends firmware");
      await runStep(page(), "The device reports what it runs");
      const { token } = await (await answered).json();
      const sent = calls.map((made) => made.map((call) => call.headers().authorization));
      const own = `Bearer ${token}`;
      expect(sent).toEqual([[undefined], [undefined], [own], [own, own]]);
    });

    it("sends the reader's own readings, numbered consecutively", async () => {
      const calls = recordCalls(page(), "SendTelemetry");
      await runSteps(page(), ...toToken);
      await page().getByLabel("Reading").fill("grüße");
      await runSteps(page(), sending, sending);
      const telemetry = Buffer.from("grüße").toString("base64");
      const readings = calls.map((call) => call.postDataJSON());
      expect(readings).toMatchObject([
        { telemetry, sequence: 1 },
        { telemetry, sequence: 2 },
      ]);
    });
  });

  describe("a tunnel", () => {
    const page = openStory(stage, "tunnel");
    const toSession = ["Get the gateway's public keys", "Register your end", "Agree on a key"];

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

    it("leads from its diagram to the step", async () => {
      await page().getByRole("button", { name: "Agree on a key" }).first().click();
      const focused = "document.activeElement.closest('li.step')?.querySelector('h2').textContent";
      expect(await page().evaluate(focused)).toBe("Agree on a key");
    });

    it("registers the public key, keeps the secret key, and requests one key per direction", async () => {
      const registered = recordCalls(page(), "RegisterPeer");
      const shaken = recordCalls(page(), "Handshake");
      const [meeting = "", ...toSecret] = toSession;
      await runStep(page(), meeting);
      await page().getByLabel("Name").fill("Phone");
      await runSteps(page(), ...toSecret);
      expect([...registered, ...shaken].map((call) => call.postDataJSON())).toEqual([
        { peerName: "Phone", publicKey: expect.stringMatching(/^[\w+/=]{2092}$/) },
        { tunnelId: expect.any(String), keyForm: "PER_DIRECTION" },
      ]);
    });

    it("continues with the newest key after each rekey", async () => {
      await runSteps(page(), ...toSession, "Replace the key", "Send a packet", "Receive a packet");
      expect(await checksOf(page(), "Receive a packet")).toEqual(["browser: valid"]);
      expect(await runSteps(page(), "Replace the key")).toContain("Key 3 is in use.");
      expect(await runSteps(page(), "Send a packet")).toContain("which the gateway opened");
    });
  });

  // A script that runs before the page stays in its tab.
  describe("a tunnel over an insecure line", () => {
    const page = openStory(stage, "tunnel");

    it("explains that the browser does not encrypt there", async () => {
      await page().addInitScript("Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined })");
      await page().reload();
      const outcome = await runSteps(
        page(),
        "Get the gateway's public keys",
        "Register your end",
        "Agree on a key",
      );
      expect(outcome).toContain("ORIGIN_INSECURE");
    });
  });

  describe("a blockchain", () => {
    const page = openStory(stage, "chain");
    const verdicts = (list: string) =>
      page().getByRole("list", { name: list }).locator("> li .verdict").allInnerTexts();
    const grow = () => runSteps(page(), "Register a validator", "Watch the chain", "Add blocks");

    it("draws blocks with the reader's own data when the stream delivers them", async () => {
      await runSteps(page(), "Register a validator", "Watch the chain");
      await page().getByLabel("Block one").fill("<b>grüße</b> \u{1f511}");
      await runStep(page(), "Add blocks");
      const drawn = page().getByRole("list", { name: "The chain, as it grows" }).locator("> li");
      await drawn.locator(".said", { hasText: "<b>grüße</b> \u{1f511}" }).waitFor();
      await expect.poll(() => textOf(drawn.last())).toContain("signature valid");
    });

    it("turns the reader's block red in the copy, and nothing before it", async () => {
      await grow();
      const blocks = page().getByLabel("Block", { exact: true });
      const last = await blocks.locator("option").last().textContent();
      await blocks.selectOption(last ?? "");
      await page().getByLabel("The forger").selectOption("and recomputes the hash");
      await runStep(page(), "Tamper with a block in your copy");
      // A block that arrived after the reader looked has a broken link as well.
      expect((await verdicts("Your changed copy")).slice(0, 2)).toEqual(["holds", "SIGNATURE"]);
      expect(new Set(await verdicts("The chain, as it grows"))).toEqual(new Set(["holds"]));
    });
  });

  describe("a token", () => {
    const page = openStory(stage, "provenance");

    it("is hashed the same by browser and server, whatever the words", async () => {
      await page().getByLabel("Name", { exact: true }).fill('"Grüße" \u2028 \\ \u{1f5bc}');
      await page().getByLabel("Description").fill("\u007f tab\u00a0</script> €");
      await page().getByLabel("Artwork").fill("");
      await runStep(page(), "Mint a token");
      expect(await checksOf(page(), "Mint a token")).toEqual([
        "browser: equal",
        "browser: valid",
        "browser: equal",
      ]);
    });
  });

  describe("a proposal", () => {
    const page = openStory(stage, "governance");

    it("is hashed the same by browser and server, whatever the reader writes", async () => {
      await runSteps(page(), "Three signers generate their keys", "The signers create a wallet");
      await page().getByLabel("Title").fill('Ein "Dach"\u2028');
      await page().getByLabel("Proposal").fill("grüße");
      const proposing = "A signer creates a proposal";
      await runStep(page(), proposing);
      expect(await checksOf(page(), proposing)).toEqual(["browser: equal"]);
    });

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
