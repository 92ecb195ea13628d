import { timestampDate } from "@bufbuild/protobuf/wkt";
import { expect, it, onTestFinished, vi } from "vitest";
import { type Block, BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { bytesOf } from "../support/bytes.ts";
import { outcomesOf, refusal } from "../support/refusal.ts";
import { invalid } from "../support/refusals.ts";
import { present } from "./answers.ts";
import { addBlocks, brokenIndexes, type ChainClient, readChain } from "./chain.ts";
import { addressOf, verifiesOutside } from "./node-crypto.ts";
import { describeReplicas, describeService, freshOrder } from "./service-server.ts";

const data = bytesOf("5 from ada to bob");

describeService("BlockchainService.AddBlock", BlockchainService, ({ client, start }) => {
  it("creates hashes, links and signatures that anyone can recompute and verify", async () => {
    const { client } = await start();
    const { publicKey, publicKeyPem, validatorAddress } = await client.registerNode({});
    expect(validatorAddress).toBe(addressOf(publicKey));
    const added = await addBlocks(client, 3);
    const chain = await readChain(client);
    expect(chain.slice(1)).toEqual(added);
    expect(brokenIndexes(chain)).toEqual([]);
    const verified = added.map(({ blockHash, signature }) => {
      const hash = Buffer.from(blockHash, "hex");
      return [publicKey, publicKeyPem].map((key) => verifiesOutside(key, hash, signature));
    });
    expect(verified).toEqual(Array(3).fill([true, true]));
  });

  it("signs with the first or the named validator, in upper or lower case", async () => {
    const { client } = await start();
    const [first, second] = [await client.registerNode({}), await client.registerNode({ name: "second" })];
    const validatorAddress = `0x${second.validatorAddress.slice(2).toUpperCase()}`;
    const blocks = [await client.addBlock({ data }), await client.addBlock({ data, validatorAddress })];
    const signedBy = blocks.map(({ block }) => block?.validatorAddress);
    expect(signedBy).toEqual([first.validatorAddress, second.validatorAddress]);
    const { blockHash, signature } = present(blocks[1]?.block);
    expect(verifiesOutside(second.publicKey, Buffer.from(blockHash, "hex"), signature)).toBe(true);
    expect(await client.verifyChain({})).toMatchObject({ valid: true, blocksChecked: 3 });
  });

  it("returns the block's time to the millisecond", async () => {
    const { client } = await start();
    await client.registerNode({});
    onTestFinished(() => void vi.useRealTimers());
    vi.setSystemTime(new Date("2026-03-04T05:06:07.089Z"));
    const { block } = await client.addBlock({ data });
    expect(timestampDate(present(block?.timestamp)).toISOString()).toBe("2026-03-04T05:06:07.089Z");
  });

  it("rejects an unknown validator", async () => {
    const validatorAddress = `0x${"0".repeat(40)}`;
    const unknown = { code: "NotFound", reason: "VALIDATOR_NOT_FOUND" };
    expect(await refusal(client.addBlock({ data, validatorAddress }))).toEqual(unknown);
  });

  it("adds one block per Idempotency-Key, even if its calls share a transaction", async () => {
    const { client } = await start();
    await client.registerNode({});
    for (let times = 0; times < 10; times += 1) {
      const [order, otherOrder] = [freshOrder(), freshOrder()];
      const repeated = Array.from({ length: 4 }, () => client.addBlock({ data }, order));
      const different = ["one", "other"].map((text) => client.addBlock({ data: bytesOf(text) }, otherOrder));
      const outcomes = await Promise.allSettled(different);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      expect(new Set((await Promise.all(repeated)).map(({ block }) => block?.index)).size).toBe(1);
    }
    const chain = await readChain(client);
    expect([chain.length, brokenIndexes(chain)]).toEqual([1 + 10 * 2, []]);
  });
});

describeReplicas("BlockchainService.AddBlock", BlockchainService, (startTwo) => {
  it("appends the blocks of 64 racing callers without gaps, 32 on each of two servers", async () => {
    const [here, there] = await startTwo();
    await here.client.registerNode({});
    const calls = Array.from({ length: 64 }, (_, i) =>
      (i % 2 ? here : there).client.addBlock({ data: bytesOf(`${i}`) }),
    );
    expect(await outcomesOf(calls)).toEqual({ answered: 64, refusals: [] });
    const chain = await readChain(here.client);
    expect([chain.length, brokenIndexes(chain)]).toEqual([65, []]);
    expect(await readChain(there.client)).toEqual(chain);
    expect(await there.client.verifyChain({})).toMatchObject({ valid: true, blocksChecked: 65 });
  });
});

const from = (index: number, count: number) => Array.from({ length: count }, (_, i) => index + i);
const indexesOf = (blocks: readonly { index: number }[]) => blocks.map(({ index }) => index);

/** Watches until the test ends; the returned function reads a number of blocks. */
function watch(client: ChainClient, fromIndex?: number) {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const request = fromIndex === undefined ? {} : { fromIndex };
  const answers = client.watchBlocks(request, { signal: stop.signal })[Symbol.asyncIterator]();
  return async (count: number): Promise<Block[]> => {
    const blocks: Block[] = [];
    while (blocks.length < count) {
      const { value, done } = await answers.next();
      if (done) throw new Error("the watch ended");
      expect(value.status).toBe("success");
      blocks.push(present(value.block));
    }
    return blocks;
  };
}

describeService("BlockchainService.WatchBlocks", BlockchainService, ({ start }) => {
  it.each([
    ["genesis, if the request names no index", undefined, 0],
    ["index 2", 2, 2],
    ["the next block", 5, 5],
  ])("streams blocks from %s on, and then new ones, each once and in order", async (_what, given, begin) => {
    const { client } = await start();
    await client.registerNode({});
    await addBlocks(client, 4);
    const take = watch(client, given);
    const old = await take(5 - begin);
    expect(indexesOf(old)).toEqual(from(begin, 5 - begin));
    const fresh = take(50);
    await Promise.all(from(0, 50).map((i) => client.addBlock({ data: bytesOf(`${i}`) })));
    const blocks = [...old, ...(await fresh)];
    expect(indexesOf(blocks)).toEqual(from(begin, 55 - begin));
    expect(blocks).toEqual((await readChain(client)).slice(begin));
  });

  it("rejects an index beyond the next block, which only a longer chain has", async () => {
    const { client } = await start();
    await client.registerNode({});
    await addBlocks(client, 1);
    const answers = client.watchBlocks({ fromIndex: 3 }, { timeoutMs: 20_000 });
    expect(await refusal(answers[Symbol.asyncIterator]().next())).toEqual(invalid("fromIndex"));
  });
});
