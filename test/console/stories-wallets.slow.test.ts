import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { isMissing, run } from "../interop/tools.ts";
import { checksOf, lacksBrowser, needsBrowser, runStep, runStory, stepOf, textOf } from "./browser.ts";
import { meddle, openStory, setUpStage } from "./telling.ts";

type Json = Record<string, unknown>;

/** Changes answers of an RPC on their way to the page: a server that lies. */
function changeAnswers(page: Page, rpc: string, change: (answer: Json) => void): Promise<void> {
  return meddle(page, rpc, {
    answer: (answer) => {
      change(answer);
      return answer;
    },
  });
}

/** What came of a command: the reason of a refusal, or "answered". */
function readOutcome(output: string): string | undefined {
  if (/"status":\s*"success"/.test(output)) return "answered";
  return /"reason":\s*"(\w+)"/.exec(output)?.[1];
}

describe.skipIf(lacksBrowser)(
  `the console's stories of contracts and wallets, in a real browser${needsBrowser}`,
  { timeout: 180_000 },
  () => {
    const stage = setUpStage();

    for (const path of ["contracts", "wallets"]) {
      for (const tool of ["curl", "grpcurl"]) {
        const lacks = isMissing(tool);
        const needs = lacks ? ` (needs ${tool})` : "";
        describe(`commands to copy in #/${path}`, () => {
          const page = openStory(stage, path);

          it.skipIf(lacks)(`give what the page got: ${tool}${needs}`, async () => {
            await page().context().grantPermissions(["clipboard-read", "clipboard-write"]);
            await runStory(page());
            const calls = await page().locator("details.call").all();
            const shown: (string | undefined)[] = [];
            const got: (string | undefined)[] = [];
            for (const call of calls) {
              await call.locator("> summary").click();
              await call.getByRole("button", { name: tool, exact: true }).click();
              await call.getByRole("button", { name: `Copy ${tool} command` }).click();
              await call.getByText("Copied").waitFor();
              const command = await page().evaluate<string>("navigator.clipboard.readText()");
              await page().keyboard.press("Tab");
              const { stdout, stderr } = await run("sh", ["-c", command]);
              shown.push(
                /refused with (\w+)/.exec(await textOf(call.locator("> summary")))?.[1] ?? "answered",
              );
              got.push(readOutcome(stdout + stderr));
            }
            expect(got.length).toBeGreaterThan(5);
            expect(got).toEqual(shown);
          });
        });
      }
    }

    describe("contracts", () => {
      const page = openStory(stage, "contracts");
      const allValid = ["server: valid", "browser: valid", "server: valid", "browser: valid"];

      it("deploys, and the browser finds hash and signature right", async () => {
        await page().getByLabel("Code").fill("fn main() {\n\tpay(“Ada”, 1);\n}\n");
        expect(await runStep(page(), "Deploy a contract")).toContain("finds hash and signature valid");
        expect(await checksOf(page(), "Deploy a contract")).toEqual(["browser: equal", "browser: valid"]);
      });

      it("finds that changed code is not what was signed", async () => {
        await runStep(page(), "Deploy a contract");
        await runStep(page(), "Change the code by one bit");
        expect(await checksOf(page(), "Change the code by one bit")).toEqual([
          "browser: different",
          "browser: not valid",
        ]);
      });

      it("finds that a server hashed other code", async () => {
        await page().route("**/dapp.DappService/DeployContract", async (route) => {
          const request = route.request().postDataJSON();
          await route.continue({ postData: JSON.stringify({ ...request, code: `${request.code} ` }) });
        });
        await runStep(page(), "Deploy a contract");
        expect(await checksOf(page(), "Deploy a contract")).toEqual([
          "browser: different",
          "browser: not valid",
        ]);
      });

      it("signs twice, and both sides find each signature valid", async () => {
        expect(await runStep(page(), "Sign a message twice")).toContain("ML-DSA-65 3,309 bytes");
        await runStep(page(), "Verify each signature, on both sides");
        expect(await checksOf(page(), "Verify each signature, on both sides")).toEqual(allValid);
      });

      const ecdsaBroken = ["server: not valid", "browser: not valid", "server: valid", "browser: valid"];
      const mldsaBroken = ["server: valid", "browser: valid", "server: not valid", "browser: not valid"];
      const together = ["server: not valid", "browser: not valid"];
      for (const [title, field] of [
        ["Break one half", "Half to break"],
        ["Break one half of the composite", "Half of the composite to break"],
      ] as const) {
        for (const [half, found] of [
          ["ECDSA", ecdsaBroken],
          ["ML-DSA-65", mldsaBroken],
        ] as const) {
          it(`has both sides name the broken half: “${title}”, ${half}`, async () => {
            await page().getByLabel(field).selectOption(half);
            await runStep(page(), "Sign a message twice");
            expect(await runStep(page(), title)).toContain(`find the ${half} half not valid`);
            expect(await checksOf(page(), title)).toEqual([...found, ...together]);
          });
        }
      }

      it("believes no server that calls a broken half valid", async () => {
        await changeAnswers(page(), "dapp.DappService/DualVerify", (answer) => {
          Object.assign(answer, { ecdsaValid: true, mldsaValid: true, bothValid: true });
        });
        await runStep(page(), "Sign a message twice");
        await runStep(page(), "Break one half");
        expect(await checksOf(page(), "Break one half")).toEqual([
          ...["server: valid", "browser: not valid", "server: valid", "browser: valid"],
          ...["server: valid", "browser: not valid"],
        ]);
      });

      it("makes another valid ECDSA signature without the key", async () => {
        await runStep(page(), "Sign a message twice");
        await runStep(page(), "Another ECDSA signature, without the key");
        const step = stepOf(page(), "Another ECDSA signature, without the key");
        const [made, mirrored] = await step.locator(".bytes .hex").allInnerTexts();
        expect(made).not.toBe(mirrored);
        expect(await checksOf(page(), "Another ECDSA signature, without the key")).toEqual(allValid);
      });

      it("verifies the composite on both sides", async () => {
        await runStep(page(), "Sign a message twice");
        await runStep(page(), "Verify the composite");
        expect(await checksOf(page(), "Verify the composite")).toEqual(allValid);
      });

      it("has both sides refuse a half that was taken out of the composite", async () => {
        await runStep(page(), "Sign a message twice");
        await runStep(page(), "Take the composite apart");
        expect(await checksOf(page(), "Take the composite apart")).toEqual(mldsaBroken);
      });

      it("shows the server's refusal of a signature that can be none", async () => {
        await runStep(page(), "Sign a message twice");
        expect(await runStep(page(), "Cut a signature short")).toContain("LENGTH_INVALID");
      });
    });

    describe("wallets", () => {
      const page = openStory(stage, "wallets");
      const start = async (): Promise<void> => {
        await runStep(page(), "Create a wallet");
        await runStep(page(), "Sign a transaction");
      };

      it("creates a wallet, whose address is that of its key", async () => {
        await runStep(page(), "Create a wallet");
        expect(await checksOf(page(), "Create a wallet")).toEqual(["browser: equal"]);
      });

      it("believes no address that is not the key's", async () => {
        await changeAnswers(page(), "wallet.WalletService/CreateWallet", (answer) => {
          answer.address = `0x${"0".repeat(40)}`;
        });
        await runStep(page(), "Create a wallet");
        expect(await checksOf(page(), "Create a wallet")).toEqual(["browser: different"]);
      });

      it("signs a transaction, valid for both sides", async () => {
        await start();
        expect(await checksOf(page(), "Sign a transaction")).toEqual([
          "server: valid",
          "browser: valid",
          "browser: equal",
        ]);
      });

      it("has both sides refuse an altered transaction", async () => {
        await start();
        await runStep(page(), "Alter one byte");
        expect(await textOf(stepOf(page(), "Alter one byte").locator(".change ins"))).toBe("39");
        expect(await checksOf(page(), "Alter one byte")).toEqual(["server: not valid", "browser: not valid"]);
      });

      it("believes no server that calls an altered transaction valid", async () => {
        await changeAnswers(page(), "wallet.WalletService/VerifyTransaction", (answer) => {
          answer.valid = true;
        });
        await start();
        await runStep(page(), "Alter one byte");
        expect(await checksOf(page(), "Alter one byte")).toEqual(["server: valid", "browser: not valid"]);
      });

      it("finds by the address that a thief signed", async () => {
        await start();
        await runStep(page(), "Swap the key");
        expect(await checksOf(page(), "Swap the key")).toEqual([
          "server: valid",
          "browser: valid",
          "server: another",
          "browser: another",
        ]);
      });

      it("takes a transaction once, though its signatures stay valid", async () => {
        await start();
        await runStep(page(), "Use it twice");
        expect(await checksOf(page(), "Use it twice")).toEqual([
          "server: valid",
          "server: valid",
          "browser: taken",
          "browser: seen before",
        ]);
      });

      it("shows the refusal of a wallet that is not there", async () => {
        expect(await runStep(page(), "Sign with a wallet that does not exist")).toContain("WALLET_NOT_FOUND");
      });

      it("finds nothing private in the answers", async () => {
        await start();
        expect(await runStep(page(), "Look for the private key")).toContain("None contains the private key.");
        expect(await checksOf(page(), "Look for the private key")).toEqual(["browser: nothing private"]);
      });

      const leaks: Record<string, { rpc: string; value: string }> = {
        publicKeyPem: { rpc: "SignTransaction", value: Buffer.alloc(4032).toString("base64") },
        publicKey: { rpc: "SignTransaction", value: Buffer.alloc(4032).toString("base64") },
        label: { rpc: "CreateWallet", value: "5e".repeat(32) },
        algorithm: { rpc: "CreateWallet", value: "5e".repeat(32) },
        status: { rpc: "VerifyTransaction", value: "5e".repeat(32) },
      };
      for (const [field, { rpc, value }] of Object.entries(leaks)) {
        it(`finds that ${field} in the answer of ${rpc} is nothing that is known to be public`, async () => {
          await changeAnswers(page(), `wallet.WalletService/${rpc}`, (answer) => {
            answer[field] = value;
          });
          await start();
          await runStep(page(), "Look for the private key");
          expect(await checksOf(page(), "Look for the private key")).toEqual(["browser: not known"]);
        });
      }

      it("gets no field beyond the public ones, nor bytes as long as a secret key or its seed", async () => {
        const answers: Promise<Json>[] = [];
        page().on("response", (response) => {
          if (/wallet\.WalletService\/(?!$)/.test(response.url()) && response.ok())
            answers.push(response.json());
        });
        await runStory(page());
        const fields = (await Promise.all(answers)).flatMap((answer) => Object.entries(answer));
        expect(new Set(fields.map(([name]) => name))).toEqual(
          new Set([
            ...["status", "walletId", "address", "publicKey", "algorithm", "createdAt", "publicKeyPem"],
            ...["label", "signature", "valid"],
          ]),
        );
        const sizes = fields
          .filter(([name]) => name === "publicKey" || name === "signature")
          .map(([, value]) => Buffer.from(String(value), "base64").length);
        expect(new Set(sizes)).toEqual(new Set([1952, 3309]));
      });
    });
  },
);
