import { timestampDate } from "@bufbuild/protobuf/wkt";
import { expect, it, onTestFinished, vi } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { bytesOf } from "../support/bytes.ts";
import { outcomesOf, refusal } from "../support/refusal.ts";
import { invalid, reused } from "../support/refusals.ts";
import { present, readPages, restRefusal } from "./answers.ts";
import { addBlocks, brokenIndexes, genesisHash, readChain, zeros } from "./chain.ts";
import { aHash, anAddress, aPem, aTime, base64Of } from "./expected.ts";
import { addressOf, verifiesOutside } from "./node-crypto.ts";
import { countRepeated, describeReplicas, describeService, freshOrder } from "./service-server.ts";

const data = bytesOf("5 from ada to bob");
const noValidator = { code: "FailedPrecondition", reason: "VALIDATOR_MISSING" };

const genesis = {
  index: 0,
  prevHash: zeros,
  data: Buffer.from("genesis").toString("base64"),
  timestamp: "1970-01-01T00:00:00Z",
  blockHash: genesisHash,
  signature: "",
  validatorAddress: `0x${"0".repeat(40)}`,
};

describeService("BlockchainService over REST", BlockchainService, (start, shared) => {
  it("registers a node, adds a block, shows and verifies the chain, and counts it", async () => {
    const { rest } = await start();
    const { json: node } = await rest("POST /api/blockchain/register-node", {});
    expect(node).toEqual({
      ...{ status: "success", validatorAddress: anAddress, publicKey: base64Of(1952), publicKeyPem: aPem },
    });
    const { json: added } = await rest("POST /api/blockchain/add-block", { data: data.toBase64() });
    const block = {
      ...{ index: 1, prevHash: genesisHash, data: data.toBase64(), timestamp: aTime, blockHash: aHash },
      ...{ signature: base64Of(3309), validatorAddress: node.validatorAddress },
    };
    expect(added).toEqual({ status: "success", block });
    const { json: chain } = await rest("GET /api/blockchain/chain");
    expect(chain).toEqual({
      status: "success",
      blocks: [genesis, added.block],
      length: 2,
      headHash: (added.block as { blockHash: string }).blockHash,
      nextPageToken: "",
      totalSize: 2,
    });
    const { json: verified } = await rest("POST /api/blockchain/verify-chain", {});
    expect(verified).toEqual({ status: "success", valid: true, blocksChecked: 2, reason: "" });
    const { json: health } = await rest("GET /api/blockchain/health");
    expect(health).toEqual({ status: "success", serviceStatus: "UP", chainLength: 2 });
  });

  it("begins with genesis, which is valid", async () => {
    const { rest } = await start();
    expect((await rest("GET /api/blockchain/chain")).json).toEqual({
      ...{ status: "success", blocks: [genesis], length: 1, headHash: genesisHash },
      ...{ nextPageToken: "", totalSize: 1 },
    });
    const { json } = await rest("POST /api/blockchain/verify-chain", {});
    expect(json).toEqual({ status: "success", valid: true, blocksChecked: 1, reason: "" });
  });

  it("connects peers and lists them", async () => {
    const [{ rest }, other] = [await start(), await start()];
    const empty = { status: "success", peers: [], nextPageToken: "", totalSize: 0 };
    expect((await rest("GET /api/blockchain/peers")).json).toEqual(empty);
    const { json } = await rest("POST /api/blockchain/connect-peer", { address: other.authority });
    const peer = { address: other.authority, peerStatus: "CONNECTED", height: 1, lastSeenAt: aTime };
    expect(json).toEqual({ status: "success", peer });
    const { json: listed } = await rest("GET /api/blockchain/peers");
    expect(listed).toEqual({ ...empty, peers: [json.peer], totalSize: 1 });
  });

  it("lists validators", async () => {
    const { rest } = await start();
    const empty = { status: "success", validators: [], nextPageToken: "", totalSize: 0 };
    expect((await rest("GET /api/blockchain/validators")).json).toEqual(empty);
    const { json: node } = await rest("POST /api/blockchain/register-node", { name: "north" });
    const { validatorAddress, publicKey, publicKeyPem } = node;
    const validator = { validatorAddress, publicKey, publicKeyPem, name: "north", registeredAt: aTime };
    expect((await rest("GET /api/blockchain/validators")).json).toEqual({
      ...empty,
      validators: [{ ...validator, registrationStatus: "REGISTERED" }],
      totalSize: 1,
    });
  });

  it("answers 400 for add-block without a validator", async () => {
    const { rest } = await start();
    const answer = await rest("POST /api/blockchain/add-block", { data: "eA==" });
    expect(restRefusal(answer)).toMatchObject({
      ...{ status: 400, code: "FAILED_PRECONDITION", reason: "VALIDATOR_MISSING" },
    });
  });

  it.each([
    ["POST /api/blockchain/register-node", { label: "x" }, "label"],
    ["POST /api/blockchain/add-block", {}, "data"],
    ["POST /api/blockchain/add-block", { data: "eA==", validatorAddress: "bob" }, "validatorAddress"],
    ["POST /api/blockchain/verify-chain", { deep: true }, "deep"],
    ["POST /api/blockchain/connect-peer", { address: "http://x" }, "address"],
    ["POST /api/blockchain/connect-peer", { address: "127.0.0.1" }, "address"],
    ["GET /api/blockchain/chain?pageSize=1001", undefined, "pageSize"],
    ["GET /api/blockchain/validators?pageSize=1001", undefined, "pageSize"],
    ["GET /api/blockchain/peers?pageToken=x", undefined, "pageToken"],
  ])("%s refuses %j: it names %s", async (line, body, field) => {
    const { rest } = await shared();
    const answer = restRefusal(await rest(line, body));
    expect(answer).toMatchObject({ status: 400, code: "INVALID_ARGUMENT", fields: [field] });
  });
});

describeService("BlockchainService.AddBlock", BlockchainService, (start, shared) => {
  it("hashes, links and signs what anyone can compute and verify outside", async () => {
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

  it("is refused if there is no validator", async () => {
    const { client } = await start();
    expect(await refusal(client.addBlock({ data }))).toEqual(noValidator);
    expect((await client.getHealth({})).chainLength).toBe(1);
  });

  it("signs with the first validator, or with the one that is named, in either case", async () => {
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

  it("tells when the block was made, to the millisecond", async () => {
    const { client } = await start();
    await client.registerNode({});
    onTestFinished(() => void vi.useRealTimers());
    vi.setSystemTime(new Date("2026-03-04T05:06:07.089Z"));
    const { block } = await client.addBlock({ data });
    expect(timestampDate(present(block?.timestamp)).toISOString()).toBe("2026-03-04T05:06:07.089Z");
  });

  it.each([
    ["no data", { data: new Uint8Array() }, invalid("data")],
    ["more than 64 KiB", { data: new Uint8Array(65_537) }, invalid("data")],
    ["an address of 39 digits", { validatorAddress: `0x${"0".repeat(39)}` }, invalid("validatorAddress")],
    [
      "an unknown validator",
      { validatorAddress: `0x${"0".repeat(40)}` },
      { code: "NotFound", reason: "VALIDATOR_NOT_FOUND" },
    ],
  ])("refuses %s", async (_what, change, expected) => {
    const { client } = await shared();
    await client.registerNode({});
    expect(await refusal(client.addBlock({ data, ...change }))).toEqual(expected);
  });

  it("takes 64 KiB of any bytes", async () => {
    const { client } = await shared();
    await client.registerNode({});
    const largest = Buffer.alloc(65_536, 0xff);
    const { block } = await client.addBlock({ data: largest });
    expect(largest.equals(present(block).data)).toBe(true);
  });

  it("gives 64 callers who race places without gaps", async () => {
    const { client } = await start();
    await client.registerNode({});
    const calls = Array.from({ length: 64 }, (_, i) => client.addBlock({ data: bytesOf(`${i}`) }));
    const added = (await Promise.all(calls)).map(({ block }) => present(block));
    const chain = await readChain(client);
    expect(chain).toHaveLength(65);
    expect(brokenIndexes(chain)).toEqual([]);
    expect(added.toSorted((a, b) => a.index - b.index)).toEqual(chain.slice(1));
    expect(await client.verifyChain({})).toMatchObject({ valid: true, blocksChecked: 65 });
  });

  it("of one Idempotency-Key adds one block, also for 20 callers at once, and refuses another request", async () => {
    const { client } = await start();
    await client.registerNode({});
    const counts = await countRepeated((order) => client.addBlock({ data }, order));
    expect(counts).toEqual({ distinctOfTwo: 1, distinctOf20: 1 });
    const chain = await readChain(client);
    expect([chain.length, brokenIndexes(chain)]).toEqual([3, []]);
    const order = freshOrder();
    await client.addBlock({ data }, order);
    expect(await refusal(client.addBlock({ data: bytesOf("x") }, order))).toEqual(reused);
    expect(await refusal(client.registerNode({}, order))).toEqual(reused);
  });

  it("of one Idempotency-Key adds one block, also if calls of it share a transaction", async () => {
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

  it("goes on after a restart", async () => {
    const before = await start();
    await before.client.registerNode({});
    await addBlocks(before.client, 2);
    await before.close();
    const { client } = await start(before.database);
    await addBlocks(client, 1);
    const chain = await readChain(client);
    expect([chain.length, brokenIndexes(chain)]).toEqual([4, []]);
  });
});

describeReplicas("BlockchainService.AddBlock", BlockchainService, (startTwo) => {
  it("gives 64 callers who race places without gaps, 32 on each of two", async () => {
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

describeService("BlockchainService.RegisterNode", BlockchainService, (start, shared) => {
  it("of one Idempotency-Key makes one validator, also for 20 callers at once", async () => {
    const { client } = await start();
    const counts = await countRepeated((order) => client.registerNode({ name: "one" }, order));
    expect(counts).toEqual({ distinctOfTwo: 1, distinctOf20: 1 });
  });

  it.each([
    ["256 characters", "a".repeat(256)],
    ["a line break", "a\nb"],
  ])("refuses a name with %s", async (_what, name) => {
    const { client } = await shared();
    expect(await refusal(client.registerNode({ name }))).toEqual(invalid("name"));
  });
});

describeService("BlockchainService.GetChain", BlockchainService, (start) => {
  it("returns the chain from genesis on, page by page", async () => {
    const { client } = await start();
    await client.registerNode({});
    const added = await addBlocks(client, 6);
    const pages = await readPages(
      (pageToken) => client.getChain({ pageSize: 3, pageToken }),
      ({ blocks }) => blocks.map(({ index }) => index),
    );
    expect(pages).toEqual({ rows: [0, 1, 2, 3, 4, 5, 6], sizes: [3, 3, 1], totals: [7] });
    const { length, headHash } = await client.getChain({ pageSize: 1 });
    expect([length, headHash]).toEqual([7, added.at(-1)?.blockHash]);
  });

  it("ends a page where it would be larger than 3 MiB", async () => {
    const { client } = await start();
    await client.registerNode({});
    const largest = Buffer.alloc(65_536, 7);
    await Promise.all(Array.from({ length: 60 }, () => client.addBlock({ data: largest })));
    const { sizes, rows } = await readPages(
      (pageToken) => client.getChain({ pageToken }),
      ({ blocks }) => blocks.map(({ index }) => index),
    );
    expect(sizes.length).toBe(2);
    expect(rows).toEqual(Array.from({ length: 61 }, (_, i) => i));
  });

  it("refuses the page token of another list", async () => {
    const { client } = await start();
    for (const port of [1, 2]) await client.connectPeer({ address: `127.0.0.1:${port}` });
    const { nextPageToken } = await client.listPeers({ pageSize: 1 });
    expect(nextPageToken).not.toBe("");
    expect(await refusal(client.getChain({ pageToken: nextPageToken }))).toEqual(invalid("pageToken"));
  });
});

describeService("BlockchainService.ListValidators", BlockchainService, (start) => {
  it("lists validators in the order of their registration, page by page", async () => {
    const { client } = await start();
    const names = ["north", "", "south"];
    for (const name of names) await client.registerNode({ name });
    const pages = await readPages(
      (pageToken) => client.listValidators({ pageSize: 2, pageToken }),
      ({ validators }) => validators.map(({ name }) => name),
    );
    expect(pages).toEqual({ rows: names, sizes: [2, 1], totals: [3] });
  });
});
