/** What one client of a chain lives through, from its first validator to the length of the chain at the end. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Block, Peer, RegisterNodeResponse } from "#gen/blockchain/blockchain_service_pb.ts";
import { present } from "../services/answers.ts";
import type { ChainClient } from "../services/chain.ts";
import { tellOfBlocks, tellOfNodes } from "./blockchain-story-blocks.ts";
import { tellOfReading, tellOfWatching } from "./blockchain-story-chain.ts";
import { tellOfPeers } from "./blockchain-story-peers.ts";
import { tellOfRefusals } from "./blockchain-story-refusals.ts";
import type { Teller } from "./stories.ts";

/** What a chain is when a story begins: other stories may have been told to it. */
export interface Past {
  readonly length: number;
  readonly headHash: string;
  /** The address of the validator that signs if none is named; undefined if none is registered. */
  readonly firstValidator: string | undefined;
  readonly peers: readonly Peer[];
  /** As GetHealth counts. */
  readonly chainLength: number | undefined;
}

/** What a story is told with. */
interface Telling extends Teller {
  readonly chain: ChainClient;
  /** The PEMs of all validators that stories registered, by their addresses. */
  readonly validators: Map<string, string>;
}

/** What the chapters of a story share. */
export interface Stage extends Telling {
  past(): Past;
  /** Call options with the Idempotency-Key that has this name in the story. */
  once(name: string): { readonly headers: Record<string, string> };
  /** The validators of the story. */
  readonly nodes: RegisterNodeResponse[];
  /** The blocks of the story, in order. */
  readonly added: Block[];
  /** How long the chain is by now. */
  length(): number;
  /** Blocks as they come; ends with the story. */
  watch(request: { fromIndex?: number }): AsyncGenerator<Block>;
  /** Watches from the first block of the story on. */
  readonly watched: AsyncGenerator<Block>;
}

/** Tells the story as consecutive tests. No other test uses the service at the same time. */
export function tellStory(telling: Telling): void {
  const stage = createStage(telling);
  tellOfNodes(stage);
  tellOfBlocks(stage);
  tellOfReading(stage);
  tellOfWatching(stage);
  tellOfPeers(stage);
  tellOfRefusals(stage);
  tellOfHealth(stage);
}

function createStage(telling: Telling): Stage {
  const { chain } = telling;
  let past: Past | undefined;
  beforeAll(async () => {
    const { blocks, length, headHash } = await chain.getChain({ pageSize: 2 });
    const { peers } = await chain.listPeers({});
    const { chainLength } = await chain.getHealth({});
    // Each story adds its first block without naming a validator.
    past = { length, headHash, firstValidator: blocks[1]?.validatorAddress, peers, chainLength };
  });
  const ending = new AbortController();
  afterAll(() => ending.abort());
  async function* watch(request: { fromIndex?: number }): AsyncGenerator<Block> {
    for await (const { status, block } of chain.watchBlocks(request, { signal: ending.signal })) {
      expect(status).toBe("success");
      yield present(block);
    }
  }
  async function* watchStory(): AsyncGenerator<Block> {
    yield* watch({ fromIndex: present(past).length });
  }
  const story = randomUUID();
  const added: Block[] = [];
  return {
    ...telling,
    past: () => present(past),
    once: (name) => ({ headers: { "Idempotency-Key": `${story} ${name}` } }),
    nodes: [],
    added,
    length: () => present(past).length + added.length,
    watch,
    watched: watchStory(),
  };
}

function tellOfHealth({ chain, past, length }: Stage): void {
  describe("GetHealth", () => {
    it("tells that the service is up, and how long the chain is", async () => {
      expect(past().chainLength).toBe(past().length);
      expect(await chain.getHealth({})).toEqual({
        $typeName: "blockchain.BlockchainServiceGetHealthResponse",
        status: "success",
        serviceStatus: "UP",
        chainLength: length(),
      });
    });
  });
}
