import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it, vi } from "vitest";
import { type Block, BlockchainService, BlockSchema } from "#gen/blockchain/blockchain_service_pb.ts";
import { deriveAddress } from "../../page/signing-key.ts";
import { hashBlock } from "../../page/stories/chain/blocks.ts";
import { createChainCopy, receiveBlock } from "../../page/stories/chain/copy.ts";
import {
  adding,
  intruding,
  registering,
  tampering,
  verifying,
  watching,
} from "../../page/stories/chain/page.tsx";
import { fromHex } from "../../page/values.ts";
import { refusalOf, runStep, serve } from "./fake-caller.ts";

const { publicKey, secretKey } = ml_dsa65.keygen();
const validatorAddress = await deriveAddress(publicKey);

/** A block as a server would sign it. */
async function makeBlock(init: MessageInitShape<typeof BlockSchema>): Promise<Block> {
  const block = create(BlockSchema, { prevHash: "0".repeat(64), validatorAddress, ...init });
  block.blockHash = await hashBlock(block);
  block.signature = Uint8Array.from(ml_dsa65.sign(fromHex(block.blockHash), secretKey));
  return block;
}

/** A copy with two of the validator's blocks. */
async function fillCopy() {
  const copy = createChainCopy();
  copy.validators.set(validatorAddress, publicKey);
  const first = await receiveBlock(copy, { block: await makeBlock({ index: 1 }) }, []);
  const { blockHash: prevHash } = first.block;
  await receiveBlock(copy, { block: await makeBlock({ index: 2, prevHash }) }, [first]);
  return copy;
}

/** A stream that has delivered nothing yet. */
const stream = { status: "closed", failure: undefined, items: [], open() {}, close() {} } as const;

const verifier = serve(BlockchainService, { verifyChain: async () => ({ valid: true, blocksChecked: 3 }) });

describe("registering", () => {
  for (const [name, address, isKnown] of [
    ["trusts a key whose hash is the address", validatorAddress, true],
    ["does not trust a key with a different address", `0x${"0".repeat(40)}`, false],
  ] as const) {
    it(name, async () => {
      const caller = serve(BlockchainService, {
        registerNode: async () => ({ validatorAddress: address, publicKey }),
      });
      const copy = createChainCopy();
      const registered = await runStep(registering, caller, { name: "Validator 1" }, { copy });
      expect(registered.isAddressEqual).toBe(isKnown);
      expect(copy.validators.has(address)).toBe(isKnown);
    });
  }
});

describe("watching", () => {
  it("starts two blocks before the end, with validators whose address matches, and no old blocks", async () => {
    const other = `0x${"0".repeat(40)}`;
    const caller = serve(BlockchainService, {
      getChain: async () => ({ length: 9 }),
      listValidators: async () => ({
        validators: [
          { validatorAddress, publicKey },
          { validatorAddress: other, publicKey },
        ],
      }),
    });
    const copy = createChainCopy();
    copy.blocks = (await fillCopy()).blocks;
    const started = await runStep(watching, caller, {}, { copy, stream });
    expect(started).toEqual({ length: 9, fromIndex: 7 });
    expect([...copy.validators.keys()]).toEqual([validatorAddress]);
    expect(copy.blocks).toEqual([]);
  });
});

describe("receiveBlock", () => {
  it("keeps an unknown validator's block without a verdict on its signature", async () => {
    const copy = createChainCopy();
    const checked = await receiveBlock(copy, { block: await makeBlock({ index: 1 }) }, []);
    expect(checked).toMatchObject({ holds: true, signature: "unchecked" });
    expect(copy.blocks).toEqual([checked]);
  });

  it("rejects a message without a block", async () => {
    await expect(receiveBlock(createChainCopy(), {}, [])).rejects.toThrow("without a block");
  });
});

describe("adding", () => {
  /** Adds blocks to a copy with the blocks 1 and 2. */
  async function add(publicKey: Uint8Array, index: number) {
    const caller = serve(BlockchainService, {
      addBlock: async ({ data }) => ({ block: await makeBlock({ index, data }) }),
    });
    const given = { registering: { validatorAddress, publicKey }, one: "one", two: "two", three: "three" };
    return runStep(adding, caller, given, { copy: await fillCopy() });
  }

  it.each([
    ["checks each block's hash and signature", publicKey, true],
    ["detects that a different key signed", ml_dsa65.keygen().publicKey, false],
  ])("%s", async (_what, key, isSigned) => {
    expect(await add(key, 2)).toMatchObject(Array(3).fill({ isHashed: true, isSigned }));
  });

  it("fails if the stream does not deliver the blocks", async () => {
    vi.stubGlobal("setTimeout", setImmediate);
    await expect(add(publicKey, 3)).rejects.toMatchObject({ reason: "STREAM_SILENT" });
    vi.unstubAllGlobals();
  });
});

describe("verifying", () => {
  it("verifies the copy in the browser", async () => {
    const found = await runStep(verifying, verifier, {}, { copy: await fillCopy() });
    const { checked, validSignatures, areSigned } = found;
    expect(checked.map(({ holds }) => holds)).toEqual([true, true]);
    expect({ validSignatures, areSigned }).toEqual({ validSignatures: 2, areSigned: true });
  });

  it("does not call a chain signed if it knows no validator's key", async () => {
    const copy = await fillCopy();
    copy.validators.set(validatorAddress, undefined);
    const found = await runStep(verifying, verifier, {}, { copy });
    expect(found).toMatchObject({ validSignatures: 0, areSigned: false });
  });
});

describe("tampering", () => {
  it("detects the change in a copy of the copy, and leaves the copy unchanged", async () => {
    const copy = await fillCopy();
    const given = { adding: [], place: "1", words: "other", effort: "changes the data" };
    const tampered = await runStep(tampering, verifier, given, { copy, stream });
    expect(tampered.checked.map(({ fault }) => fault)).toEqual(["HASH", undefined]);
    expect(tampering.says(tampered)).toBe(
      "You changed block 1: in your copy, block 1 and the 1 after it turned red. Block 1: its content does not match its hash. The server's chain holds.",
    );
    expect(copy.blocks.every(({ holds }) => holds)).toBe(true);
  });
});

describe("intruding", () => {
  it("reports the refusal", async () => {
    const caller = serve(BlockchainService, {
      addBlock: () => {
        throw refusalOf("VALIDATOR_NOT_FOUND");
      },
    });
    expect(await runStep(intruding, caller, {})).toMatchObject({ reason: "VALIDATOR_NOT_FOUND" });
  });
});
