/** The chapters of a story that read the chain. */
import { describe, expect, it } from "vitest";
import type { Block, Validator } from "#gen/blockchain/blockchain_service_pb.ts";
import { brokenIndexes } from "../services/chain.ts";
import { addressOf } from "../services/node-crypto.ts";
import type { Stage } from "./blockchain-story.ts";
import type { Outcome } from "./calls.ts";
import { isSignatureOf } from "./outside.ts";
import { restCalls } from "./rest-calls.ts";

export function tellOfReading({ chain, nodes, past, added, length, validators }: Stage): void {
  let blocks: readonly Block[] = [];

  describe("GetChain", () => {
    it("gives the chain from genesis on, page by page", async () => {
      const pageSize = length() - 2;
      const page = await chain.getChain({ pageSize });
      const rest = await chain.getChain({ pageSize, pageToken: page.nextPageToken });
      const whole = { length: length(), totalSize: length(), headHash: added.at(-1)?.blockHash };
      expect(page).toMatchObject({ ...whole, blocks: { length: pageSize } });
      expect(rest).toMatchObject({ ...whole, blocks: { length: 2 }, nextPageToken: "" });
      blocks = [...page.blocks, ...rest.blocks];
      expect(blocks.slice(past().length)).toEqual(added);
    });

    it("gives hashes and links that come out the same outside, also of other stories", () => {
      expect(blocks).toHaveLength(length());
      expect(brokenIndexes(blocks)).toEqual([]);
    });

    it("gives signatures that node:crypto verifies with the PEMs, also of other stories", () => {
      const wrong = blocks.slice(1).filter(({ validatorAddress, signature, blockHash }) => {
        const pem = validators.get(validatorAddress);
        return !isSignatureOf(pem, signature, Buffer.from(blockHash, "hex"));
      });
      expect(wrong.map(({ index }) => index)).toEqual([]);
    });
  });

  describe("ListValidators", () => {
    const listed: Validator[] = [];

    it("lists each validator once, page by page, those of the story in the order of their registration", async () => {
      const first = await chain.listValidators({ pageSize: 2 });
      const rest = await chain.listValidators({ pageToken: first.nextPageToken });
      listed.push(...first.validators, ...rest.validators);
      expect([first.status, first.validators.length, rest.nextPageToken]).toEqual(["success", 2, ""]);
      expect([first.totalSize, rest.totalSize]).toEqual([listed.length, listed.length]);
      const addresses = listed.map(({ validatorAddress }) => validatorAddress);
      expect(new Set(addresses).size).toBe(listed.length);
      const ours = nodes.map(({ validatorAddress }) => validatorAddress);
      expect(addresses.filter((address) => ours.includes(address))).toEqual(ours);
    });

    it("gives keys that RegisterNode gave, from which the addresses are made", () => {
      for (const { validatorAddress, publicKey, publicKeyPem } of nodes) {
        const found = listed.find((validator) => validator.validatorAddress === validatorAddress);
        expect(found).toMatchObject({ registrationStatus: "REGISTERED", publicKey, publicKeyPem });
      }
      expect(listed.filter((one) => addressOf(one.publicKey) !== one.validatorAddress)).toEqual([]);
    });

    it("gives keys that verify the whole chain outside", () => {
      const keys = new Map(listed.map((one) => [one.validatorAddress, one.publicKeyPem]));
      const wrong = blocks
        .slice(1)
        .filter(
          ({ validatorAddress, signature, blockHash }) =>
            !isSignatureOf(keys.get(validatorAddress), signature, Buffer.from(blockHash, "hex")),
        );
      expect([blocks.length, wrong]).toEqual([length(), []]);
    });
  });

  describe("VerifyChain", () => {
    it("finds every block valid", async () => {
      expect(await chain.verifyChain({})).toEqual({
        $typeName: "blockchain.VerifyChainResponse",
        status: "success",
        valid: true,
        blocksChecked: length(),
        reason: "",
      });
    });
  });
}

export function tellOfWatching({ chain, added, length, watch, watched, driver, nextUrl }: Stage): void {
  describe("WatchBlocks", () => {
    it("tells each block of the story once and in order, as AddBlock answered", async () => {
      // The first one was told when it was added.
      const expected = added.slice(1);
      expect(await take(watched, expected.length)).toEqual(expected);
    });

    it("begins with genesis if it is told no place", async () => {
      const { blocks } = await chain.getChain({});
      expect(await take(watch({}), length())).toEqual(blocks);
    });

    it("is refused from a place that is not whole", async () => {
      const service = "blockchain.BlockchainService";
      const rest = restCalls[`${service}/WatchBlocks`] ?? "";
      const message = { fromIndex: 2.5 };
      // The clients of streams wait for more than one answer, and those of REST know no streams.
      const request = driver.sendsStreams ? [message] : message;
      const outcome = await driver.call(nextUrl(), { service, method: "WatchBlocks", rest, request });
      expect(outcome).toEqual<Outcome>({
        refusal: { code: "INVALID_ARGUMENT", reason: "FIELD_INVALID" },
      });
    });
  });
}

/** The next blocks that a watcher is told. */
async function take(watcher: AsyncGenerator<Block>, count: number): Promise<Block[]> {
  const told: Block[] = [];
  while (told.length < count) {
    const { value, done } = await watcher.next();
    if (done === true) throw new Error(`the watcher was told ${told.length} of ${count} blocks`);
    told.push(value);
  }
  return told;
}
