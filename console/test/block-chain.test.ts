import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { type Block, BlockSchema } from "#gen/blockchain/blockchain_service_pb.ts";
import { type BlockFault, checkBlocks, type Validators } from "../page/stories/chain/blocks.ts";
import { type Effort, efforts, forgeBlocks } from "../page/stories/chain/forge.ts";

const validator = ml_dsa65.keygen();
const validatorAddress = `0x${createHash("sha256").update(validator.publicKey).digest("hex").slice(0, 40)}`;
const validators: Validators = new Map([[validatorAddress, validator.publicKey]]);

/** Genesis and subsequent blocks as a server would write them, hashed with independent code. */
function makeChain(count: number): Block[] {
  let prevHash = "0".repeat(64);
  return Array.from({ length: count }, (_none, index) => {
    const isGenesis = index === 0;
    const content = {
      index,
      prevHash,
      data: Buffer.from(isGenesis ? "genesis" : `entry ${index}`),
      validatorAddress: isGenesis ? `0x${"0".repeat(40)}` : validatorAddress,
    };
    const ms = isGenesis ? 0 : 1_790_000_000_000 + index;
    const header = Buffer.alloc(68);
    header.writeBigUInt64BE(BigInt(index));
    header.write(prevHash, 8, "hex");
    header.writeBigUInt64BE(BigInt(ms), 40);
    header.write(content.validatorAddress.slice(2), 48, "hex");
    const hash = createHash("sha256").update(header).update(content.data).digest();
    prevHash = hash.toString("hex");
    const signature = isGenesis
      ? new Uint8Array()
      : Uint8Array.from(ml_dsa65.sign(hash, validator.secretKey));
    return create(BlockSchema, {
      ...content,
      data: Uint8Array.from(content.data),
      timestamp: timestampFromMs(ms),
      blockHash: prevHash,
      signature,
    });
  });
}

/** Each block's fault: "" if it holds, "BEFORE" if only an earlier block is invalid. */
async function faultsOf(
  blocks: readonly Block[],
  known = validators,
): Promise<(BlockFault | "" | "BEFORE")[]> {
  const checked = await checkBlocks(blocks, known);
  return checked.map(({ fault, holds }) => fault ?? (holds ? "" : "BEFORE"));
}

describe("the blockchain, as checked by the page", () => {
  it("holds from genesis on", async () => {
    const checked = await checkBlocks(makeChain(3), validators);
    expect(checked.map(({ holds, isAnchor, signature }) => ({ holds, isAnchor, signature }))).toEqual([
      { holds: true, isAnchor: false, signature: "none" },
      { holds: true, isAnchor: false, signature: "valid" },
      { holds: true, isAnchor: false, signature: "valid" },
    ]);
  });

  it("holds from a block whose predecessor is unknown", async () => {
    const checked = await checkBlocks(makeChain(4).slice(2), validators);
    expect(checked.map(({ holds, isAnchor }) => ({ holds, isAnchor }))).toEqual([
      { holds: true, isAnchor: true },
      { holds: true, isAnchor: false },
    ]);
  });

  it("reports signatures as unchecked if only the validator's address is known", async () => {
    const [checked] = await checkBlocks(makeChain(2).slice(1), new Map([[validatorAddress, undefined]]));
    expect(checked).toMatchObject({ holds: true, signature: "unchecked" });
  });

  it("does not hold at or after a missing block", async () => {
    expect(await faultsOf(makeChain(4).toSpliced(1, 1))).toEqual(["", "INDEX", "BEFORE"]);
  });

  it("does not hold with a different genesis, even if its hash is right", async () => {
    const [first] = makeChain(1);
    if (first === undefined) throw new Error("the chain is empty");
    const forged = await forgeBlocks([first], { index: 0, data: Buffer.from("mine"), effort: efforts[1] });
    expect(await faultsOf(forged)).toEqual(["HASH"]);
  });

  it("does not hold if the signer is unknown", async () => {
    expect(await faultsOf(makeChain(3), new Map())).toEqual(["", "VALIDATOR", "VALIDATOR"]);
  });

  it.each([
    ["index", { index: 2 }, "INDEX"],
    ["prevHash", { prevHash: "1".repeat(64) }, "LINK"],
    ["data", { data: new Uint8Array() }, "HASH"],
    ["timestamp", { timestamp: timestampFromMs(1) }, "HASH"],
    ["validatorAddress", { validatorAddress: `0x${"1".repeat(40)}` }, "HASH"],
    ["blockHash", { blockHash: "1".repeat(64) }, "HASH"],
    ["signature", { signature: new Uint8Array(3309) }, "SIGNATURE"],
  ])("does not hold if a block has a different %s", async (_name, change, fault) => {
    const [first, second] = makeChain(2);
    if (first === undefined || second === undefined) throw new Error("the chain is too short");
    expect(await faultsOf([first, Object.assign(second, change)])).toEqual(["", fault]);
  });

  const outcomes: Record<Effort, string[]> = {
    "changes the data": ["", "HASH", "BEFORE", "BEFORE"],
    "and recomputes the hash": ["", "SIGNATURE", "LINK", "BEFORE"],
    "and links all later blocks again": ["", "SIGNATURE", "SIGNATURE", "SIGNATURE"],
    "and signs all blocks with a different key": ["", "VALIDATOR", "VALIDATOR", "VALIDATOR"],
  };
  for (const effort of efforts) {
    it(`does not hold if a forger ${effort.replace(/^and/, "changes the data, and")}`, async () => {
      const chain = makeChain(4);
      const forged = await forgeBlocks(chain, { index: 1, data: Buffer.from("forged"), effort });
      expect(await faultsOf(forged)).toEqual(outcomes[effort]);
      expect(await faultsOf(chain)).toEqual(["", "", "", ""]);
    });
  }
});
