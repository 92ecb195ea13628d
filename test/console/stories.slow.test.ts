import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { checksOf, lacksBrowser, needsBrowser, runStep, runStory, stepOf, textOf } from "./browser.ts";
import { callKms, openStory, setUpStage } from "./telling.ts";

/** Changes answers of an RPC on their way to the page: a server that lies. */
async function changeAnswers(
  page: Page,
  rpc: string,
  change: (answer: Record<string, unknown>) => void,
): Promise<void> {
  await page.route(`**/${rpc}`, async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    change(answer);
    await route.fulfill({ response, json: answer });
  });
}

describe.skipIf(lacksBrowser)(
  `the console's stories, in a real browser${needsBrowser}`,
  { timeout: 180_000 },
  () => {
    const stage = setUpStage();

    describe("sign and verify", () => {
      const page = openStory(stage, "sign");

      it("signs, and both sides find the signature valid", async () => {
        expect(await runStep(page(), "Sign a message")).toBe(
          "The signature has 3,309 bytes, the public key 1,952 bytes.",
        );
        await runStep(page(), "Verify it, on both sides");
        expect(await checksOf(page(), "Verify it, on both sides")).toEqual([
          "server: valid",
          "browser: valid",
        ]);
      });

      for (const algorithm of ["ML-DSA-44", "ML-DSA-87", "SLH-DSA-SHA2-128s", "SLH-DSA-SHA2-128f"]) {
        it(`does so with ${algorithm}`, async () => {
          await page().getByLabel("Algorithm").selectOption(algorithm);
          await runStep(page(), "Sign a message");
          await runStep(page(), "Verify it, on both sides");
          expect(await checksOf(page(), "Verify it, on both sides")).toEqual([
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

      for (const place of ["0", "3308", "99999"]) {
        it(`has both sides refuse a signature with byte ${place} broken`, async () => {
          await runStep(page(), "Sign a message");
          await page().getByLabel("Byte of the signature").fill(place);
          await runStep(page(), "Break one bit of the signature");
          expect(await checksOf(page(), "Break one bit of the signature")).toEqual([
            "server: not valid",
            "browser: not valid",
          ]);
        });
      }

      it("has both sides refuse a message that was changed", async () => {
        await runStep(page(), "Sign a message");
        await runStep(page(), "Or change the message");
        expect(await checksOf(page(), "Or change the message")).toEqual([
          "server: not valid",
          "browser: not valid",
        ]);
      });

      it("shows the server's refusal of a signature that can be none", async () => {
        await runStep(page(), "Sign a message");
        expect(await runStep(page(), "Cut the signature short")).toContain("LENGTH_INVALID");
      });

      it("believes no server that calls a broken signature valid", async () => {
        await changeAnswers(page(), "pqc.PqcService/VerifySignature", (answer) => {
          answer.valid = true;
        });
        await runStep(page(), "Sign a message");
        await runStep(page(), "Break one bit of the signature");
        expect(await checksOf(page(), "Break one bit of the signature")).toEqual([
          "server: valid",
          "browser: not valid",
        ]);
      });

      it("waits with a step until those before it are done", async () => {
        const step = stepOf(page(), "Verify it, on both sides");
        await step.locator(".act button").press("Enter");
        expect(await textOf(step)).toContain("Do the steps above first.");
        await runStep(page(), "Sign a message");
        expect(await textOf(step)).not.toContain("Do the steps above first.");
      });

      it("empties the steps that rest on one that is done anew", async () => {
        await runStory(page());
        await page().getByLabel("Message", { exact: true }).fill("another");
        await runStep(page(), "Sign a message");
        await expect.poll(() => page().locator("li.step[data-status=ready]").count()).toBe(4);
      });

      it("shows the reason and the sentence of a refusal that nobody expected", async () => {
        await page().getByLabel("Message", { exact: true }).fill("");
        const text = await runStep(page(), "Sign a message");
        expect(text).toContain("FIELD_INVALID");
      });
    });

    describe("key exchange", () => {
      const page = openStory(stage, "key-exchange");

      for (const [algorithm, publicKey, ciphertext] of [
        ["ML-KEM-512", "800", "768"],
        ["ML-KEM-768", "1,184", "1,088"],
        ["ML-KEM-1024", "1,568", "1,568"],
        ["X-Wing", "1,216", "1,120"],
      ] as const) {
        it(`ends with one secret on both sides, with ${algorithm}`, async () => {
          await page().getByLabel("Algorithm").selectOption(algorithm);
          expect(await runStep(page(), "Your browser generates a key pair")).toContain(`${publicKey} bytes`);
          expect(await runStep(page(), "The server encapsulates a secret")).toContain(`${ciphertext} bytes`);
          await runStep(page(), "Your browser opens the ciphertext");
          expect(await checksOf(page(), "Your browser opens the ciphertext")).toEqual(["browser: equal"]);
        });
      }

      it("ends with another secret, and no error, when a bit was changed on the way", async () => {
        const outcomes = await runStory(page());
        expect(outcomes.at(-1)).toBe("Your browser gets another secret, and no error.");
        expect(await checksOf(page(), "An attacker changes one bit in transit")).toEqual([
          "browser: different",
        ]);
      });

      it("finds that a server shows another secret than it sent", async () => {
        await changeAnswers(page(), "pqc.PqcService/ExchangeKeys", (answer) => {
          answer.sharedSecret = Buffer.alloc(32).toString("base64");
        });
        await runStep(page(), "Your browser generates a key pair");
        await runStep(page(), "The server encapsulates a secret");
        await runStep(page(), "Your browser opens the ciphertext");
        expect(await checksOf(page(), "Your browser opens the ciphertext")).toEqual(["browser: different"]);
      });

      it("keeps the secret key in the page", async () => {
        const sent: string[] = [];
        page().on("request", (request) => sent.push(request.postData() ?? ""));
        await runStory(page());
        const calls = sent.filter((body) => body !== "").map((body) => JSON.parse(body));
        expect(calls.map((call) => Object.keys(call).sort())).toEqual([["algorithm", "publicKey"]]);
      });
    });

    describe("tokens", () => {
      const page = openStory(stage, "tokens");

      it("takes a token apart, and both sides find it valid", async () => {
        await page().getByLabel("User").fill("grace");
        await runStep(page(), "Log in and decode the token");
        const text = await textOf(stepOf(page(), "Log in and decode the token"));
        expect(text).toContain('"sub": "grace"');
        await runStep(page(), "Verify it with the published keys");
        expect(await checksOf(page(), "Verify it with the published keys")).toEqual([
          "browser: equal",
          "browser: valid",
          "server: valid",
        ]);
      });

      it("is refused without the token and known with it", async () => {
        await runStep(page(), "Log in and decode the token");
        expect(await runStep(page(), "Use it")).toBe(
          "Without it: TOKEN_MISSING. With it, the server knows you as ada.",
        );
      });

      it("has both sides refuse a forged token", async () => {
        const outcomes = await runStory(page());
        expect(outcomes.at(-1)).toContain("TOKEN_SIGNATURE_INVALID");
        expect(await checksOf(page(), "Forge it")).toEqual(["browser: not valid", "server: not valid"]);
      });

      it("finds that the published key is not the one that signed", async () => {
        await changeAnswers(page(), "pqc.TokenService/GetJwks", ({ keys }) => {
          const [key] = keys as { pub: string }[];
          if (key) key.pub = `${key.pub.startsWith("A") ? "B" : "A"}${key.pub.slice(1)}`;
        });
        await runStep(page(), "Log in and decode the token");
        await runStep(page(), "Verify it with the published keys");
        expect(await checksOf(page(), "Verify it with the published keys")).toEqual([
          "browser: different",
          "browser: not valid",
          "server: valid",
        ]);
      });
    });

    describe("managed keys", () => {
      const page = openStory(stage, "keys");

      it("follows a key from ACTIVE over ROTATED to DESTROYED", async () => {
        await runStory(page());
        const states = await page().locator(".life [aria-current]").allInnerTexts();
        expect(states).toEqual(["ACTIVE", "ROTATED", "DESTROYED"]);
        expect(await checksOf(page(), "Sign with it")).toEqual(["server: valid", "browser: valid"]);
        expect(await checksOf(page(), "Rotate it")).toEqual(["server: valid"]);
        expect(await checksOf(page(), "Verify the whole log")).toEqual(["server: valid", "browser: valid"]);
      });

      it("shows the audit chain as it grows, each hash computed again", async () => {
        const entries = page().locator(".chain ol > li");
        await runStep(page(), "Watch the audit log");
        await runStep(page(), "Create a key");
        await expect.poll(() => textOf(entries.last())).toContain("CREATE");
        await runStep(page(), "Sign with it");
        await expect.poll(() => textOf(entries.last())).toContain("VERIFY");
        await runStep(page(), "Rotate it");
        await runStep(page(), "Destroy it");
        await expect.poll(() => textOf(entries.last())).toContain("KEY_STATE_INVALID");
        expect(await page().locator(".chain li[data-link=broken]").count()).toBe(0);
        expect(await page().locator(".chain li[data-link=holds]").count()).toBeGreaterThanOrEqual(9);
      });

      it("does not watch while the reader is elsewhere, and catches up then", async () => {
        await runStep(page(), "Watch the audit log");
        const entries = page().locator(".chain ol > li");
        await runStep(page(), "Create a key");
        await expect.poll(() => textOf(entries.last())).toContain("CREATE");
        const before = await entries.count();
        const isClosed = page().waitForEvent("requestfailed", (request) =>
          request.url().endsWith("/WatchAuditLog"),
        );
        await page().getByRole("navigation").getByRole("link", { name: "Tokens" }).click();
        await isClosed;
        await callKms(stage(), "create-key", { algorithm: "ML-DSA-44" });
        await page().getByRole("navigation").getByRole("link", { name: "Managed keys" }).click();
        await expect.poll(() => entries.count()).toBe(before + 1);
      });

      it("stops watching when the reader says so", async () => {
        await runStep(page(), "Watch the audit log");
        await page().getByRole("button", { name: "Stop watching" }).click();
        await page().getByRole("button", { name: "Stop watching" }).waitFor({ state: "detached" });
        const before = await page().locator(".chain ol > li").count();
        await runStep(page(), "Create a key");
        await runStep(page(), "Sign with it");
        expect(await page().locator(".chain ol > li").count()).toBe(before);
      });
    });
  },
);
