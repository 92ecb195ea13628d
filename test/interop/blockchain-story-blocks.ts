/** The chapters of a story that make validators and blocks. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import type { Block } from "#gen/blockchain/blockchain_service_pb.ts";
import { present } from "../services/answers.ts";
import { hashOutside } from "../services/chain.ts";
import { addressOf } from "../services/node-crypto.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { reused } from "../support/refusals.ts";
import type { Stage } from "./blockchain-story.ts";
import { isSignatureOf, rawKeyOf } from "./outside.ts";

const data = bytesOf("5 from ada to bob");
const everyByte = Uint8Array.from({ length: 256 }, (_, i) => i);

export function tellOfNodes({ chain, nodes, validators, once }: Stage): void {
  describe("RegisterNode", () => {
    it.each([
      ["of an empty request", {}],
      ["with a name of any script", { name: "till 7 – Zürich 😀" }],
    ])("makes a validator %s, whose address is of its public key", async (_title, request) => {
      const node = await chain.registerNode(request);
      const { publicKey, publicKeyPem } = node;
      expect(node).toEqual({
        $typeName: "blockchain.RegisterNodeResponse",
        status: "success",
        validatorAddress: addressOf(publicKey),
        publicKey: rawKeyOf(publicKeyPem),
        publicKeyPem: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/),
      });
      expect(publicKey).toHaveLength(1952);
      expect(validators.has(node.validatorAddress)).toBe(false);
      validators.set(node.validatorAddress, publicKeyPem);
      nodes.push(node);
    });

    it("with an Idempotency-Key makes one validator, and is refused if another request had the key", async () => {
      const first = await chain.registerNode({ name: "spare" }, once("node"));
      expect(await chain.registerNode({ name: "spare" }, once("node"))).toEqual(first);
      expect(await refusal(chain.registerNode({ name: "other" }, once("node")))).toEqual(reused);
    });
  });
}

/** What a block should be that was added. */
interface Expected {
  readonly data: Uint8Array;
  readonly validatorAddress: string;
  /** Milliseconds since 1970: when it was asked for. */
  readonly askedAtMs: number;
}

/** Takes a block for the next of the story if it follows the one before it, is hashed and is signed. */
function expectNext({ past, added, length, validators }: Stage, block: Block, expected: Expected): void {
  const { data, validatorAddress, askedAtMs } = expected;
  const { timestamp, blockHash, signature } = block;
  expect(block).toEqual({
    $typeName: "blockchain.Block",
    index: length(),
    prevHash: added.at(-1)?.blockHash ?? past().headHash,
    data,
    timestamp,
    blockHash: hashOutside(block),
    signature,
    validatorAddress,
  });
  expect(timestampDate(present(timestamp)).getTime()).toSatisfy(
    (madeAtMs: number) => madeAtMs >= askedAtMs && madeAtMs <= Date.now(),
  );
  expect(signature).toHaveLength(3309);
  const pem = validators.get(validatorAddress);
  expect(isSignatureOf(pem, signature, Buffer.from(blockHash, "hex"))).toBe(true);
  added.push(block);
}

export function tellOfBlocks(stage: Stage): void {
  const { chain, past, nodes, watched, once } = stage;
  describe("AddBlock", () => {
    const firstAddress = () => past().firstValidator ?? present(nodes[0]).validatorAddress;
    const secondAddress = () => present(nodes[1]).validatorAddress;

    it("lets the first validator of all sign if it names none, and watchers are told at once", async () => {
      const told = watched.next();
      const askedAtMs = Date.now();
      const { block } = await chain.addBlock({ data });
      expectNext(stage, present(block), { data, validatorAddress: firstAddress(), askedAtMs });
      expect((await told).value).toEqual(block);
    });

    it.each([
      ["text", data, (address: string) => address],
      ["every byte there is", everyByte, (address: string) => `0x${address.slice(2).toUpperCase()}`],
    ])("lets the validator that it names sign a block of %s", async (_title, content, spell) => {
      const validatorAddress = secondAddress();
      const askedAtMs = Date.now();
      const request = { data: content, validatorAddress: spell(validatorAddress) };
      const { block } = await chain.addBlock(request);
      expectNext(stage, present(block), { data: content, validatorAddress, askedAtMs });
    });

    it("gives two callers of one moment places that follow each other", async () => {
      const validatorAddress = secondAddress();
      const askedAtMs = Date.now();
      const add = async () => present((await chain.addBlock({ data, validatorAddress })).block);
      const blocks = await Promise.all([add(), add()]);
      for (const block of blocks.toSorted((a, b) => a.index - b.index))
        expectNext(stage, block, { data, validatorAddress, askedAtMs });
    });

    it("with an Idempotency-Key adds one block, however often it is made", async () => {
      const askedAtMs = Date.now();
      const first = await chain.addBlock({ data }, once("block 1"));
      const expected = { data, validatorAddress: firstAddress(), askedAtMs };
      expectNext(stage, present(first.block), expected);
      expect(await chain.addBlock({ data }, once("block 1"))).toEqual(first);
    });

    it("with an Idempotency-Key adds one block if it is made twice at one moment, and none of another request", async () => {
      const askedAtMs = Date.now();
      const add = () => chain.addBlock({ data }, once("block 2"));
      const [one, other] = await Promise.all([add(), add()]);
      expectNext(stage, present(one.block), { data, validatorAddress: firstAddress(), askedAtMs });
      expect(other).toEqual(one);
      expect(await refusal(chain.addBlock({ data: everyByte }, once("block 2")))).toEqual(reused);
    });
  });
}
