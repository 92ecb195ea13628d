import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it, vi } from "vitest";
import { type Block, BlockchainService, BlockSchema } from "#gen/blockchain/blockchain_service_pb.ts";
import { checkBlocks } from "../../page/stories/chain/blocks.ts";
import { createChainCopy, receiveBlock } from "../../page/stories/chain/copy.ts";
import { efforts, forgeBlocks } from "../../page/stories/chain/forge.ts";
import * as story from "../../page/stories/chain/page.tsx";
import { runStep, serve } from "./fake-caller.ts";

const { publicKey, secretKey } = ml_dsa65.keygen();
const validatorAddress = `0x${createHash("sha256").update(publicKey).digest("hex").slice(0, 40)}`;
const other = `0x${"0".repeat(40)}`;
const validators = new Map([[validatorAddress, publicKey]]);

/** A block as a server would write it, hashed with independent code; the genesis block has no signature. */
function makeBlock(index: number, prevHash = "0".repeat(64), data = Buffer.from(`entry ${index}`)): Block {
  const isGenesis = index === 0;
  const address = isGenesis ? other : validatorAddress;
  const content = isGenesis ? Buffer.from("genesis") : data;
  const ms = isGenesis ? 0 : 1_790_000_000_000 + index;
  const header = Buffer.alloc(68);
  header.writeBigUInt64BE(BigInt(index));
  header.write(prevHash, 8, "hex");
  header.writeBigUInt64BE(BigInt(ms), 40);
  header.write(address.slice(2), 48, "hex");
  const hash = createHash("sha256").update(header).update(content).digest();
  return create(BlockSchema, {
    ...{ index, prevHash, validatorAddress: address, timestamp: timestampFromMs(ms) },
    ...{ data: Uint8Array.from(content), blockHash: hash.toString("hex") },
    signature: isGenesis ? new Uint8Array() : Uint8Array.from(ml_dsa65.sign(hash, secretKey)),
  });
}

/** The genesis block and the ones after it. */
function makeChain(count: number): Block[] {
  const chain: Block[] = [];
  for (let index = 0; index < count; index += 1) chain.push(makeBlock(index, chain.at(-1)?.blockHash));
  return chain;
}

/** Each block's fault: "" if it holds, "BEFORE" if only an earlier block is invalid. */
async function faultsOf(blocks: readonly Block[], known = validators): Promise<string> {
  const checked = await checkBlocks(blocks, known);
  return checked.map(({ fault, holds }) => fault ?? (holds ? "" : "BEFORE")).join(" ");
}

describe("the blockchain, as checked by the page", () => {
  it("holds from genesis on, or from a block whose predecessor is unknown", async () => {
    expect(await checkBlocks(makeChain(3), validators)).toMatchObject([
      { holds: true, isAnchor: false, signature: "none" },
      { holds: true, isAnchor: false, signature: "valid" },
      { holds: true, isAnchor: false, signature: "valid" },
    ]);
    const anchored = [true, false].map((isAnchor) => ({ holds: true, isAnchor }));
    expect(await checkBlocks(makeChain(4).slice(2), validators)).toMatchObject(anchored);
  });

  it("reports signatures as unchecked if only the validator's address is known", async () => {
    const checked = await checkBlocks(makeChain(2).slice(1), new Map([[validatorAddress, undefined]]));
    expect(checked).toMatchObject([{ holds: true, signature: "unchecked" }]);
  });

  it("does not hold at or after a missing block", async () => {
    expect(await faultsOf(makeChain(4).toSpliced(1, 1))).toBe(" INDEX BEFORE");
  });

  it("does not hold with a different genesis, even if its hash is right", async () => {
    const forged = await forgeBlocks(makeChain(1), {
      index: 0,
      data: Buffer.from("mine"),
      effort: efforts[1],
    });
    expect(await faultsOf(forged)).toBe("HASH");
  });

  it("does not hold if the signer is unknown", async () => {
    expect(await faultsOf(makeChain(3), new Map())).toBe(" VALIDATOR VALIDATOR");
  });

  it.each([
    [{ index: 2 }, " INDEX"],
    [{ prevHash: "1".repeat(64) }, " LINK"],
    [{ data: new Uint8Array() }, " HASH"],
    [{ timestamp: timestampFromMs(1) }, " HASH"],
    [{ validatorAddress: `0x${"1".repeat(40)}` }, " HASH"],
    [{ blockHash: "1".repeat(64) }, " HASH"],
    [{ signature: new Uint8Array(3309) }, " SIGNATURE"],
  ])("does not hold if a block differs: %o", async (change, faults) => {
    const [first, second] = makeChain(2);
    expect(await faultsOf([first as Block, Object.assign(second as Block, change)])).toBe(faults);
  });

  const outcomes = {
    "changes the data": " HASH BEFORE BEFORE",
    "and recomputes the hash": " SIGNATURE LINK BEFORE",
    "and links all later blocks again": " SIGNATURE SIGNATURE SIGNATURE",
    "and signs all blocks with a different key": " VALIDATOR VALIDATOR VALIDATOR",
  };
  it.each(efforts)("does not hold if a forger changes the data: %s", async (effort) => {
    const chain = makeChain(4);
    const forged = await forgeBlocks(chain, { index: 1, data: Buffer.from("forged"), effort });
    expect(await faultsOf(forged)).toBe(outcomes[effort]);
    expect(await faultsOf(chain)).toBe("   ");
  });
});

/** A copy with two of the validator's blocks. */
async function fillCopy() {
  const copy = createChainCopy();
  copy.validators.set(validatorAddress, publicKey);
  const first = await receiveBlock(copy, { block: makeBlock(1) }, []);
  await receiveBlock(copy, { block: makeBlock(2, first.block.blockHash) }, [first]);
  return copy;
}

/** A stream that has delivered nothing yet. */
const stream = { status: "closed", failure: undefined, items: [], open() {}, close() {} } as const;

const verifier = serve(BlockchainService, { verifyChain: async () => ({ valid: true, blocksChecked: 3 }) });

it.each([
  ["trusts a key whose hash is the address", validatorAddress, true],
  ["does not trust a key with a different address", other, false],
])("registering %s", async (_what, address, isKnown) => {
  const caller = serve(BlockchainService, {
    registerNode: async () => ({ validatorAddress: address, publicKey }),
  });
  const copy = createChainCopy();
  const registered = await runStep(story.registering, caller, { name: "Validator 1" }, { copy });
  expect([registered.isAddressEqual, copy.validators.has(address)]).toEqual([isKnown, isKnown]);
});

it("watching starts two blocks before the end, with validators whose address matches, and no old blocks", async () => {
  const addresses = [validatorAddress, other];
  const caller = serve(BlockchainService, {
    getChain: async () => ({ length: 9 }),
    listValidators: async () => ({
      validators: addresses.map((one) => ({ validatorAddress: one, publicKey })),
    }),
  });
  const copy = createChainCopy();
  copy.blocks = (await fillCopy()).blocks;
  const started = await runStep(story.watching, caller, {}, { copy, stream });
  expect(started).toEqual({ length: 9, fromIndex: 7 });
  expect([[...copy.validators.keys()], copy.blocks]).toEqual([[validatorAddress], []]);
});

describe("receiveBlock", () => {
  it("keeps an unknown validator's block without a verdict on its signature", async () => {
    const copy = createChainCopy();
    const checked = await receiveBlock(copy, { block: makeBlock(1) }, []);
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
      addBlock: async ({ data }) => ({ block: makeBlock(index, undefined, Buffer.from(data)) }),
    });
    const given = { registering: { validatorAddress, publicKey }, one: "one", two: "two", three: "three" };
    return runStep(story.adding, caller, given, { copy: await fillCopy() });
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

it.each([
  ["verifies the copy in the browser", publicKey, 2],
  ["does not call a chain signed if it knows no validator's key", undefined, 0],
])("verifying %s", async (_what, key, validSignatures) => {
  const copy = await fillCopy();
  copy.validators.set(validatorAddress, key);
  const found = await runStep(story.verifying, verifier, {}, { copy });
  expect(found).toMatchObject({ validSignatures, areSigned: validSignatures === 2 });
  expect(found.checked.map(({ holds }) => holds)).toEqual([true, true]);
});

it("tampering detects the change in a copy of the copy, and leaves the copy unchanged", async () => {
  const copy = await fillCopy();
  const given = { adding: [], place: "1", words: "other", effort: "changes the data" };
  const tampered = await runStep(story.tampering, verifier, given, { copy, stream });
  expect(tampered.checked.map(({ fault }) => fault)).toEqual(["HASH", undefined]);
  expect(story.tampering.says(tampered)).toBe(
    "You changed block 1: in your copy, block 1 and the 1 after it turned red. Block 1: its content does not match its hash. The server's chain holds.",
  );
  expect(copy.blocks.every(({ holds }) => holds)).toBe(true);
});
