import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { checksOf, lacksBrowser, needsBrowser, runStep, textOf } from "./browser.ts";
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

/** Calls the server beside the page, as somebody else. */
async function callBeside(url: string, rpc: string, request: Json): Promise<Json> {
  const response = await fetch(`${url}/${rpc}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Json;
}

/** Answers a stream with these messages, and ends it (Connect protocol, "streaming-response"). */
async function answerStream(page: Page, rpc: string, messages: readonly Json[]): Promise<void> {
  const envelope = (flags: number, value: Json): Buffer => {
    const body = Buffer.from(JSON.stringify(value));
    const head = Buffer.alloc(5);
    head.writeUInt8(flags);
    head.writeUInt32BE(body.length, 1);
    return Buffer.concat([head, body]);
  };
  const body = Buffer.concat([...messages.map((message) => envelope(0, message)), envelope(2, {})]);
  await page.route(`**/${rpc}`, (route) => route.fulfill({ contentType: "application/connect+json", body }));
}

/** Puts another first byte into a base64 text. */
function alterFirst(text: unknown): string {
  const bytes = Buffer.from(String(text), "base64");
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  return bytes.toString("base64");
}

describe.skipIf(lacksBrowser)(
  `the console's stories of chain and tokens, in a real browser${needsBrowser}`,
  { timeout: 180_000 },
  () => {
    const stage = setUpStage();

    describe("chain", () => {
      const page = openStory(stage, "chain");
      const drawn = () => page().getByRole("list", { name: "The chain, as it grows" }).locator("> li");
      const verdicts = (list: string) =>
        page().getByRole("list", { name: list }).locator("> li .verdict").allInnerTexts();
      const grow = async (): Promise<void> => {
        await runStep(page(), "Register a validator");
        await runStep(page(), "Watch the chain");
        await runStep(page(), "Add blocks");
      };

      it("registers a validator, whose address is that of its key", async () => {
        expect(await runStep(page(), "Register a validator")).toContain("1,952 bytes");
        expect(await checksOf(page(), "Register a validator")).toEqual(["browser: equal"]);
      });

      it("believes no address that is not the key's, and trusts no signature under it", async () => {
        await changeAnswers(page(), "blockchain.BlockchainService/RegisterNode", (answer) => {
          answer.publicKey = alterFirst(answer.publicKey);
        });
        await changeAnswers(page(), "blockchain.BlockchainService/ListValidators", (answer) => {
          for (const validator of answer.validators as Json[])
            validator.publicKey = alterFirst(validator.publicKey);
        });
        await grow();
        expect(await checksOf(page(), "Register a validator")).toEqual(["browser: different"]);
        await expect.poll(() => textOf(drawn().last())).toContain("signature not checked");
        await runStep(page(), "Verify the chain, on both sides");
        expect(await checksOf(page(), "Verify the chain, on both sides")).toEqual([
          "server: valid",
          "browser: valid",
          "browser: not valid",
        ]);
      });

      it("draws blocks as they come by the stream, each checked in the browser", async () => {
        await grow();
        expect(await checksOf(page(), "Add blocks")).toEqual([
          ...["browser: equal", "browser: valid"],
          ...["browser: equal", "browser: valid"],
          ...["browser: equal", "browser: valid"],
        ]);
        // The page draws a moment later what the stream has brought.
        await expect
          .poll(() => drawn().locator(".said").allInnerTexts())
          .toEqual(expect.arrayContaining(["Ada pays Grace 5", "Grace pays Alan 3", "Alan pays Ada 1"]));
        expect(new Set(await verdicts("The chain, as it grows"))).toEqual(new Set(["holds"]));
        expect(await textOf(drawn().last())).toContain("signature valid");
      });

      /** Somebody else's validator; and a block of it. */
      const registerBeside = async () => {
        const rpc = "blockchain.BlockchainService/RegisterNode";
        return (await callBeside(stage().server.url, rpc, {})).validatorAddress;
      };
      const addBeside = async (validatorAddress: unknown): Promise<void> => {
        const data = Buffer.from("Somebody else").toString("base64");
        const rpc = "blockchain.BlockchainService/AddBlock";
        const { block } = await callBeside(stage().server.url, rpc, { data, validatorAddress });
        await drawn()
          .filter({ hasText: `Block ${(block as Json).index}` })
          .waitFor();
      };

      it("checks the signatures of others by the list of validators", async () => {
        const validator = await registerBeside();
        await runStep(page(), "Watch the chain");
        await addBeside(validator);
        expect(await textOf(drawn().last())).toContain("signature valid");
      });

      it("draws blocks of validators that came later, whose signatures it cannot check", async () => {
        // The page has read the list of validators when this step ends.
        await runStep(page(), "Watch the chain");
        await addBeside(await registerBeside());
        expect(await textOf(drawn().last())).toContain("signature not checked");
      });

      it("adds the reader's own data, whatever it says", async () => {
        await page().getByLabel("Block one").fill("<b>grüße</b> \u{1f511}");
        await grow();
        await drawn().locator(".said", { hasText: "<b>grüße</b> \u{1f511}" }).waitFor();
      });

      it("stops watching when the reader says so", async () => {
        await runStep(page(), "Watch the chain");
        await page().getByRole("button", { name: "Stop watching" }).click();
        await page().getByText("The stream has ended.").waitFor();
      });

      it("draws a stream red whose blocks do not follow one another", async () => {
        await grow();
        const { length } = await callBeside(stage().server.url, "blockchain.BlockchainService/GetChain", {
          pageSize: 1,
        });
        const { blocks } = await callBeside(stage().server.url, "blockchain.BlockchainService/GetChain", {});
        const [first, second, third] = (blocks as Json[]).slice(-3);
        expect(Number(length)).toBeGreaterThanOrEqual(4);
        await answerStream(page(), "blockchain.BlockchainService/WatchBlocks", [
          { block: first },
          { block: { ...second, data: Buffer.from("Ada pays Eve 500").toString("base64") } },
          { block: third },
        ]);
        await runStep(page(), "Watch the chain");
        await expect
          .poll(() => verdicts("The chain, as it grows"))
          .toEqual(["holds", "HASH", "after a bad block"]);
      });

      it("finds that an added block is not what its hash says", async () => {
        await changeAnswers(page(), "blockchain.BlockchainService/AddBlock", ({ block }) => {
          (block as Json).data = Buffer.from("Ada pays Eve 500").toString("base64");
        });
        await grow();
        expect((await checksOf(page(), "Add blocks")).slice(0, 2)).toEqual([
          "browser: different",
          "browser: valid",
        ]);
      });

      it("verifies the chain on both sides", async () => {
        await grow();
        expect(await runStep(page(), "Verify the chain, on both sides")).toContain("All are valid.");
        expect(await checksOf(page(), "Verify the chain, on both sides")).toEqual([
          "server: valid",
          "browser: valid",
          "browser: valid",
        ]);
      });

      for (const [effort, expected] of Object.entries({
        "changes the data": ["holds", "HASH", "after a bad block", "after a bad block"],
        "and recomputes the hash": ["holds", "SIGNATURE", "LINK", "after a bad block"],
        "and links all later blocks again": ["holds", "SIGNATURE", "SIGNATURE", "SIGNATURE"],
        "and signs all blocks with another key": ["holds", "VALIDATOR", "VALIDATOR", "VALIDATOR"],
      })) {
        it(`turns a block of the copy and what follows red, when a forger ${effort.replace(/^and/, "changes the data, and")}`, async () => {
          await grow();
          await page().getByLabel("The forger").selectOption(effort);
          await runStep(page(), "Tamper with a block in your copy");
          expect(await verdicts("Your changed copy")).toEqual(expected);
          expect(await checksOf(page(), "Tamper with a block in your copy")).toEqual([
            "browser: not valid",
            "server: valid",
          ]);
        });
      }

      it("leaves what is before the changed block as it is", async () => {
        await grow();
        const rpc = "blockchain.BlockchainService/GetChain";
        const { length } = await callBeside(stage().server.url, rpc, { pageSize: 1 });
        // Waits for the block, which comes by the stream.
        await page()
          .getByLabel("Block", { exact: true })
          .selectOption(String(Number(length) - 1));
        await runStep(page(), "Tamper with a block in your copy");
        expect(await verdicts("Your changed copy")).toEqual(["holds", "HASH"]);
      });

      it("finds nothing where nothing was changed", async () => {
        await grow();
        await page().getByLabel("New content").fill("Ada pays Grace 5");
        expect(await runStep(page(), "Tamper with a block in your copy")).toContain("still valid");
      });

      it("tampers with a copy alone", async () => {
        await grow();
        await runStep(page(), "Tamper with a block in your copy");
        expect(await runStep(page(), "Verify the chain, on both sides")).toContain("All are valid.");
        expect(new Set(await verdicts("The chain, as it grows"))).toEqual(new Set(["holds"]));
      });

      it("shows the refusal of a stranger's block", async () => {
        expect(await runStep(page(), "Add a block as a stranger")).toContain("VALIDATOR_NOT_FOUND");
      });
    });

    describe("token and provenance", () => {
      const page = openStory(stage, "provenance");

      it("mints, and the browser finds hash, signature and address right", async () => {
        expect(await runStep(page(), "Mint a token")).toContain("3,309 bytes");
        expect(await checksOf(page(), "Mint a token")).toEqual([
          "browser: equal",
          "browser: valid",
          "browser: equal",
        ]);
      });

      it("hashes any words as the server does", async () => {
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

      it("believes no server that mints other words", async () => {
        await changeAnswers(page(), "nft.NftService/Mint", (answer) => {
          answer.metadataHash = "0".repeat(64);
          answer.creatorAddress = `0x${"0".repeat(40)}`;
          answer.signature = alterFirst(answer.signature);
        });
        await runStep(page(), "Mint a token");
        expect(await checksOf(page(), "Mint a token")).toEqual([
          "browser: different",
          "browser: not valid",
          "browser: different",
        ]);
      });

      it("follows the token from its creator over two owners", async () => {
        await runStep(page(), "Mint a token");
        await runStep(page(), "Transfer it twice");
        expect(await runStep(page(), "Follow its history")).toContain("Over 2 transfers");
        expect(await checksOf(page(), "Follow its history")).toEqual([
          "server: valid",
          "browser: unbroken",
          "browser: valid",
        ]);
        expect(await page().locator(".owners li").count()).toBe(2);
      });

      it("shows the refusal of a second sale by who sold it", async () => {
        await runStep(page(), "Mint a token");
        await runStep(page(), "Transfer it twice");
        expect(await runStep(page(), "Transfer it again")).toContain("OWNER_MISMATCH");
      });

      it("finds that a step of the history is missing", async () => {
        await changeAnswers(page(), "nft.NftService/GetHistory", (answer) => {
          answer.history = (answer.history as Json[]).slice(1);
          answer.totalSize = 1;
        });
        await runStep(page(), "Mint a token");
        await runStep(page(), "Transfer it twice");
        await runStep(page(), "Follow its history");
        expect(await checksOf(page(), "Follow its history")).toContain("browser: broken");
      });

      it("finds that stored words are not those of the creator", async () => {
        await changeAnswers(page(), "nft.NftService/GetToken", ({ metadata }) => {
          (metadata as Json).description = "A copy";
        });
        await runStep(page(), "Mint a token");
        await runStep(page(), "Transfer it twice");
        await runStep(page(), "Follow its history");
        expect(await checksOf(page(), "Follow its history")).toEqual([
          "server: valid",
          "browser: unbroken",
          "browser: not valid",
        ]);
      });

      for (const place of ["0", "7", "99999"]) {
        it(`has both sides refuse a copy with letter ${place} changed`, async () => {
          await runStep(page(), "Mint a token");
          await page().getByLabel("Letter of the name").fill(place);
          expect(await runStep(page(), "Change one letter in a copy")).toContain("SIGNATURE");
          expect(await checksOf(page(), "Change one letter in a copy")).toEqual([
            "server: not valid",
            "browser: not valid",
          ]);
        });
      }

      it("tells the same words by somebody else apart", async () => {
        await runStep(page(), "Mint a token");
        await runStep(page(), "Mint the same words with another key");
        expect(await checksOf(page(), "Mint the same words with another key")).toEqual([
          "server: valid",
          "browser: valid",
          "server: not valid",
          "browser: not valid",
        ]);
      });
    });
  },
);
