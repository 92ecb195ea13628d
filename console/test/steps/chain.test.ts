import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { type Block, BlockchainService, BlockSchema } from "#gen/blockchain/blockchain_service_pb.ts";
import { fromHex } from "../../page/hex.ts";
import { deriveAddress } from "../../page/signing-key.ts";
import { hashBlock } from "../../page/stories/chain/blocks.ts";
import {
  addAsStranger,
  addBlocks,
  createChainCopy,
  prepareWatch,
  receiveBlock,
  registerValidator,
  sayTampering,
  tamperWithCopy,
  verifyChains,
} from "../../page/stories/chain/steps.ts";
import { createFakeCaller } from "./fake-caller.ts";

const { publicKey, secretKey } = ml_dsa65.keygen();
const validatorAddress = await deriveAddress(publicKey);

/** A block as a server would sign it. */
async function makeBlock(init: MessageInitShape<typeof BlockSchema>): Promise<Block> {
  const block = create(BlockSchema, { prevHash: "0".repeat(64), validatorAddress, ...init });
  block.blockHash = await hashBlock(block);
  block.signature = Uint8Array.from(ml_dsa65.sign(fromHex(block.blockHash), secretKey));
  return block;
}

/** A copy with two blocks of the validator. */
async function fillCopy() {
  const copy = createChainCopy();
  copy.validators.set(validatorAddress, publicKey);
  const first = await receiveBlock(copy, { block: await makeBlock({ index: 1 }) }, []);
  const { blockHash: prevHash } = first.block;
  await receiveBlock(copy, { block: await makeBlock({ index: 2, prevHash }) }, [first]);
  return copy;
}

const verifier = createFakeCaller(({ service }) =>
  service(BlockchainService, { verifyChain: async () => ({ valid: true, blocksChecked: 3 }) }),
);

describe("registerValidator", () => {
  for (const [name, address, isKnown] of [
    ["trusts a key whose hash is the address", validatorAddress, true],
    ["does not trust a key of another address", `0x${"0".repeat(40)}`, false],
  ] as const) {
    it(name, async () => {
      const caller = createFakeCaller(({ service }) =>
        service(BlockchainService, { registerNode: async () => ({ validatorAddress: address, publicKey }) }),
      );
      const copy = createChainCopy();
      expect((await registerValidator(caller, copy, "Validator 1")).isAddressEqual).toBe(isKnown);
      expect(copy.validators.has(address)).toBe(isKnown);
    });
  }
});

describe("prepareWatch", () => {
  it("starts two blocks before the end, with the validators whose address fits and no old blocks", async () => {
    const other = `0x${"0".repeat(40)}`;
    const caller = createFakeCaller(({ service }) =>
      service(BlockchainService, {
        getChain: async () => ({ length: 9 }),
        listValidators: async () => ({
          validators: [
            { validatorAddress, publicKey },
            { validatorAddress: other, publicKey },
          ],
        }),
      }),
    );
    const copy = createChainCopy();
    copy.blocks = (await fillCopy()).blocks;
    expect(await prepareWatch(caller, copy)).toEqual({ length: 9, fromIndex: 7 });
    expect([...copy.validators.keys()]).toEqual([validatorAddress]);
    expect(copy.blocks).toEqual([]);
  });
});

describe("receiveBlock", () => {
  it("keeps a block of an unknown validator without a verdict on its signature", async () => {
    const copy = createChainCopy();
    const checked = await receiveBlock(copy, { block: await makeBlock({ index: 1 }) }, []);
    expect(checked).toMatchObject({ holds: true, signature: "unchecked" });
    expect(copy.blocks).toEqual([checked]);
  });

  it("refuses a message without a block", async () => {
    await expect(receiveBlock(createChainCopy(), {}, [])).rejects.toThrow("without a block");
  });
});

describe("addBlocks", () => {
  const caller = createFakeCaller(({ service }) =>
    service(BlockchainService, {
      addBlock: async ({ data }) => ({ block: await makeBlock({ index: 3, data }) }),
    }),
  );

  it("checks hash and signature of each block", async () => {
    const copy = await fillCopy();
    copy.arrivals.note(3);
    const added = await addBlocks(caller, copy, { validatorAddress, publicKey }, ["one"]);
    expect(added).toMatchObject([{ isHashed: true, isSigned: true }]);
  });

  it("finds that another key signed", async () => {
    const copy = await fillCopy();
    copy.arrivals.note(3);
    const other = { validatorAddress, publicKey: ml_dsa65.keygen().publicKey };
    expect(await addBlocks(caller, copy, other, ["one"])).toMatchObject([
      { isHashed: true, isSigned: false },
    ]);
  });

  it("fails when the stream does not bring the blocks", async () => {
    const validator = { validatorAddress, publicKey };
    await expect(addBlocks(caller, await fillCopy(), validator, ["one"], 0)).rejects.toMatchObject({
      reason: "STREAM_SILENT",
    });
  });
});

describe("verifyChains", () => {
  it("verifies the copy in the browser", async () => {
    const { checked, validSignatures, areSigned } = await verifyChains(verifier, await fillCopy());
    expect(checked.map(({ holds }) => holds)).toEqual([true, true]);
    expect({ validSignatures, areSigned }).toEqual({ validSignatures: 2, areSigned: true });
  });

  it("does not call a chain signed when it knows no validator's key", async () => {
    const copy = await fillCopy();
    copy.validators.set(validatorAddress, undefined);
    expect(await verifyChains(verifier, copy)).toMatchObject({ validSignatures: 0, areSigned: false });
  });
});

describe("tamperWithCopy", () => {
  it("finds the change in a copy of the copy, and leaves the copy as it is", async () => {
    const copy = await fillCopy();
    const forgery = { index: 1, data: Uint8Array.of(1), effort: "changes the data" } as const;
    const { checked, server } = await tamperWithCopy(verifier, copy, forgery);
    expect(checked.map(({ fault }) => fault)).toEqual(["HASH", undefined]);
    expect(sayTampering(1, checked, server)).toBe(
      "You changed block 1: in your copy, block 1 and the 1 after it turned red. Block 1: its content does not match its hash. The server's chain holds.",
    );
    expect(copy.blocks.every(({ holds }) => holds)).toBe(true);
  });
});

describe("addAsStranger", () => {
  it("reports the refusal", async () => {
    const caller = createFakeCaller(({ service }) =>
      service(BlockchainService, {
        addBlock: () => {
          throw new ConnectError("no such validator", Code.NotFound);
        },
      }),
    );
    expect(await addAsStranger(caller, "data")).toMatchObject({ code: "NOT_FOUND" });
  });
});
