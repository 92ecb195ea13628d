/** What one client of a chain sees before anybody registered a validator; it changes nothing. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import type { Block } from "#gen/blockchain/blockchain_service_pb.ts";
import { type ChainClient, genesisHash, zeros } from "../services/chain.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";

const genesis: Block = {
  $typeName: "blockchain.Block",
  index: 0,
  prevHash: zeros,
  data: bytesOf("genesis"),
  timestamp: timestampFromMs(0),
  blockHash: genesisHash,
  signature: new Uint8Array(),
  validatorAddress: `0x${"0".repeat(40)}`,
};

const data = bytesOf("5 from ada to bob");

/** Tells the story; all who hear it have the same service, and no other story is told to that. */
export function tellOfGenesis(chain: ChainClient): void {
  it("GetChain gives genesis, the same everywhere", async () => {
    expect(await chain.getChain({})).toEqual({
      $typeName: "blockchain.GetChainResponse",
      status: "success",
      blocks: [genesis],
      length: 1,
      headHash: genesisHash,
      nextPageToken: "",
      totalSize: 1,
    });
  });

  it("WatchBlocks begins with genesis", async () => {
    const gone = new AbortController();
    const blocks = chain.watchBlocks({}, { signal: gone.signal })[Symbol.asyncIterator]();
    const { value } = await blocks.next();
    gone.abort();
    expect(value).toMatchObject({ status: "success", block: genesis });
  });

  it("VerifyChain finds it valid", async () => {
    expect(await chain.verifyChain({})).toMatchObject({ valid: true, blocksChecked: 1, reason: "" });
  });

  describe("AddBlock is refused", () => {
    it.each([
      ["as there is no validator", {}, "FailedPrecondition", "VALIDATOR_MISSING"],
      ["if it names one", { validatorAddress: genesis.validatorAddress }, "NotFound", "VALIDATOR_NOT_FOUND"],
    ])("%s", async (_title, change, code, reason) => {
      expect(await refusal(chain.addBlock({ data, ...change }))).toEqual({ code, reason });
    });
  });

  it("ListPeers gives none, and GetHealth counts genesis alone", async () => {
    expect(await chain.listPeers({})).toMatchObject({ peers: [], nextPageToken: "", totalSize: 0 });
    expect(await chain.getHealth({})).toMatchObject({ serviceStatus: "UP", chainLength: 1 });
  });
}
