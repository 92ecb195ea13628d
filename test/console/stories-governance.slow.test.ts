import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { checksOf, lacksBrowser, needsBrowser, stepOf, textOf } from "./browser.ts";
import { meddle, openStory, recordCalls, runSteps, setUpStage, tellStory } from "./telling.ts";

const gathering = "Three signers generate their keys";
const founding = "They create a wallet";
const proposing = "A signer creates a proposal";
const hurrying = "Execution without signatures";
const intruding = "A stranger signs";
const signing = "You sign";
const joining = "Grace signs";
const executing = "Execute it, once";
const toProposal = [gathering, founding, proposing];

const outcomesFromWallet = [
  expect.stringMatching(/^The wallet is multisig-[\w-]+\. It needs 2 of 3 signatures\.$/),
  expect.stringMatching(/^It is proposal-[\w-]+, and accepts signatures for one hour\.$/),
  "The server refuses: THRESHOLD_NOT_REACHED.",
  "Under his own address: SIGNER_UNKNOWN. Under Grace's address: SIGNATURE_INVALID.",
  "The proposal has 1 of 2 signatures. Yours counts once: ALREADY_SIGNED.",
  "The proposal has 2 of 2 signatures.",
  "The proposal is EXECUTED. A second time it is refused: PROPOSAL_EXECUTED.",
];

const title = `the story of a proposal, in a real browser${needsBrowser}`;
describe.skipIf(lacksBrowser)(title, { timeout: 180_000 }, () => {
  const stage = setUpStage();

  describe("told to its end", () => {
    const told = tellStory(stage, "governance");

    it("says what came of each step", () => {
      expect(told().outcomes).toEqual([
        "Your key is in your browser, Grace's in the key service, Alan's in the key service.",
        ...outcomesFromWallet,
      ]);
    });

    it("says which side checked what", () => {
      expect(told().checks).toEqual({
        [founding]: ["browser: equal"],
        [proposing]: ["browser: equal"],
        [intruding]: ["browser: not valid", "server: not valid"],
        [signing]: ["browser: valid", "server: valid"],
        [joining]: ["browser: valid", "server: valid"],
      });
    });
  });

  describe("step by step", () => {
    const page = openStory(stage, "governance");

    it("founds the wallet on three public keys, and shows the addresses that belong to them", async () => {
      const calls = recordCalls(page(), "CreateMultisig");
      await runSteps(page(), gathering, founding);
      const [order] = calls.map((call) => call.postDataJSON());
      expect(Object.keys(order).sort()).toEqual(["signerPublicKeys", "threshold"]);
      const addresses = order.signerPublicKeys.map((publicKey: string) => {
        const hash = createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex");
        return `0x${hash.slice(0, 40)}`;
      });
      expect(addresses).toHaveLength(3);
      expect(await stepOf(page(), gathering).locator("dd code").allInnerTexts()).toEqual(addresses);
    });

    it("finds that the wallet has another signer", async () => {
      await meddle(page(), "CreateMultisig", {
        answer: (wallet) => ({ ...wallet, signers: [`0x${"0".repeat(40)}`] }),
      });
      await runSteps(page(), gathering, founding);
      expect(await checksOf(page(), founding)).toEqual(["browser: different"]);
    });

    it("proposes what the reader wrote", async () => {
      await page().getByLabel("Title").fill('Ein "Dach"\u2028');
      await page().getByLabel("Content of the proposal").fill("grüße");
      await runSteps(page(), ...toProposal);
      expect(await checksOf(page(), proposing)).toEqual(["browser: equal"]);
      const signed = await textOf(stepOf(page(), proposing).locator(".result .code").first());
      expect(JSON.parse(signed)).toMatchObject({
        title: 'Ein "Dach"\u2028',
        data: Buffer.from("grüße").toString("base64"),
      });
    });

    it("finds that something else was proposed, and signs only what the reader wrote", async () => {
      const data = Buffer.from("Pay 40,000 to Mallory").toString("base64");
      await meddle(page(), "CreateProposal", { request: (order) => ({ ...order, data }) });
      await runSteps(page(), ...toProposal);
      expect(await checksOf(page(), proposing)).toEqual(["browser: different"]);
      expect(await runSteps(page(), hurrying, signing)).toContain("SIGNATURE_INVALID");
    });

    it("sends one signature of the browser's twice, and of it the server counts one", async () => {
      const calls = recordCalls(page(), "SignProposal");
      await runSteps(page(), ...toProposal, hurrying, signing);
      const orders = calls.map((call) => call.postDataJSON());
      expect(orders).toHaveLength(2);
      expect(orders[0]).toEqual(orders[1]);
      expect(await stepOf(page(), signing).locator("dd").allInnerTexts()).toEqual([
        "signed",
        "not yet",
        "not yet",
      ]);
    });

    it("finds that the key service signed something else", async () => {
      await meddle(page(), "Sign", {
        request: (order) => ({ ...order, data: Buffer.alloc(32, 1).toString("base64") }),
      });
      expect(await runSteps(page(), ...toProposal, hurrying, signing, joining)).toContain(
        "SIGNATURE_INVALID",
      );
    });

    it("executes nothing before enough have signed", async () => {
      await runSteps(page(), ...toProposal, hurrying, signing);
      const step = stepOf(page(), executing);
      await step.locator(".act button").press("Enter");
      expect(await textOf(step)).toContain("Do the steps above first.");
    });
  });
});

describe.skipIf(lacksBrowser)(`${title}, without a key service`, { timeout: 180_000 }, () => {
  const told = tellStory(setUpStage({ args: ["--services", "defi"] }), "governance");

  it("has all keys made in the browser, and ends as the other does", () => {
    expect(told().outcomes).toEqual([
      "Your key is in your browser, Grace's in your browser, Alan's in your browser.",
      ...outcomesFromWallet,
    ]);
  });
});
