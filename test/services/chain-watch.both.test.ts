import { expect, it, onTestFinished } from "vitest";
import { type Block, BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { invalid } from "../support/refusals.ts";
import { present } from "./answers.ts";
import { addBlocks, type ChainClient, readChain } from "./chain.ts";
import { describeReplicas, describeService } from "./service-server.ts";

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

describeService("BlockchainService.WatchBlocks", BlockchainService, (start) => {
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

  it("sends the same to all watchers", async () => {
    const { client } = await start();
    await client.registerNode({});
    const watchers = from(0, 5).map(() => watch(client, 0)(11));
    await Promise.all(from(0, 10).map((i) => client.addBlock({ data: bytesOf(`${i}`) })));
    expect(await Promise.all(watchers)).toEqual(Array(5).fill(await readChain(client)));
  });
});

describeReplicas("BlockchainService.WatchBlocks", BlockchainService, (startTwo) => {
  it("streams blocks that were added through another replica", async () => {
    const [here, there] = await startTwo();
    await here.client.registerNode({});
    const take = watch(here.client, 0);
    await take(1);
    const fresh = take(20);
    await Promise.all(
      from(0, 20).map((i) => (i % 2 ? here : there).client.addBlock({ data: bytesOf(`${i}`) })),
    );
    expect(await fresh).toEqual((await readChain(here.client)).slice(1));
  });
});
