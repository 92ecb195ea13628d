import { once } from "node:events";
import http2 from "node:http2";
import { type AddressInfo, createServer, type Server } from "node:net";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import type { Kysely } from "kysely";
import { expect, it, onTestFinished } from "vitest";
import {
  AddBlockRequestSchema,
  BlockchainService,
  RegisterNodeRequestSchema,
} from "#gen/blockchain/blockchain_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { Schema } from "../../src/database/schema.ts";
import { createOpenKeys } from "../../src/secrets/sealed-keys.ts";
import { createAddBlock } from "../../src/services/blockchain/add-block.ts";
import { type Block, genesis, hashBlock } from "../../src/services/blockchain/block.ts";
import { registerNode } from "../../src/services/blockchain/register-node.ts";
import { blockchainService } from "../../src/services/blockchain/service.ts";
import { createChainStore } from "../../src/services/blockchain/store.ts";
import { verifyChain } from "../../src/services/blockchain/verify-chain.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { collectUncaught } from "../support/collect-uncaught.ts";
import { openTestStore } from "../support/open-store.ts";
import { refusal } from "../support/refusal.ts";
import { damaged } from "../support/refusals.ts";
import { systemCaller } from "../support/system-caller.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { expectTimeSince } from "../support/times.ts";
import { present, readPages } from "./answers.ts";
import { addBlocks, hashOutside } from "./chain.ts";
import { describeService, type ServiceServer } from "./service-server.ts";

type Db = Kysely<Schema>;
type BlockRow = Schema["blockchain_blocks"];
type Change = (db: Db) => Promise<unknown>;

const readBlock = (db: Db, index: number): Promise<BlockRow> =>
  db.selectFrom("blockchain_blocks").selectAll().where("block_index", "=", index).executeTakeFirstOrThrow();
const block =
  (index: number, changeOf: (row: BlockRow, next: BlockRow) => Partial<BlockRow>): Change =>
  async (db) => {
    const set = changeOf(await readBlock(db, index), await readBlock(db, index < 5 ? index + 1 : 4));
    await db.updateTable("blockchain_blocks").set(set).where("block_index", "=", index).execute();
  };
const without =
  (...indexes: number[]): Change =>
  (db) =>
    db.deleteFrom("blockchain_blocks").where("block_index", "in", indexes).execute();
const head =
  (set: Partial<Schema["blockchain_head"]>): Change =>
  (db) =>
    db.updateTable("blockchain_head").set(set).execute();
const headBackTo =
  (index: number): Change =>
  async (db) => {
    const { block_hash } = await readBlock(db, index);
    await head({ chain_length: index + 1, head_hash: block_hash })(db);
  };
const validator =
  (changeOf: (row: Schema["blockchain_validators"]) => Partial<Schema["blockchain_validators"]>): Change =>
  async (db) => {
    const row = await db.selectFrom("blockchain_validators").selectAll().executeTakeFirstOrThrow();
    await db.updateTable("blockchain_validators").set(changeOf(row)).execute();
  };
const all =
  (...changes: Change[]): Change =>
  async (db) => {
    for (const change of changes) await change(db);
  };
/** Changes a block's data and hash so that they match each other. */
const rehashed =
  (index: number): Change =>
  async (db) => {
    const { prev_hash: prevHash, validator_address, timestamp_ms } = await readBlock(db, index);
    const content = { index, prevHash, validatorAddress: validator_address, data: bytesOf("forged") };
    const set = { data: content.data, block_hash: hashOutside(content, timestamp_ms) };
    await block(index, () => set)(db);
  };
/** A sixth block that no validator added. */
const forgedEnd: Change = async (db) => {
  const last = await readBlock(db, 5);
  const row = { ...last, block_index: 6, prev_hash: last.block_hash };
  await db.insertInto("blockchain_blocks").values(row).execute();
  await rehashed(6)(db);
};

/** Creates a chain of genesis and blocks 1 to 5. */
async function chainOfSix({ client }: ServiceServer<typeof BlockchainService>): Promise<void> {
  if ((await client.getHealth({})).chainLength === 6) return;
  await client.registerNode({});
  await addBlocks(client, 5);
}

/** The tables of the chain, whose rows the tests copy unchanged. */
const tables = ["blockchain_blocks", "blockchain_head", "blockchain_validators"] as "blockchain_blocks"[];

/** Copies the tables and returns a change that restores them. */
async function keepTables(db: Db): Promise<Change> {
  const kept: [table: "blockchain_blocks", rows: BlockRow[]][] = [];
  for (const table of tables) kept.push([table, await db.selectFrom(table).selectAll().execute()]);
  return async (again) => {
    for (const [table, rows] of kept) {
      await again.deleteFrom(table).execute();
      await again.insertInto(table).values(rows).execute();
    }
  };
}

const withoutHead: Change = (db) => db.deleteFrom("blockchain_head").execute();
const withoutValidators: Change = (db) => db.deleteFrom("blockchain_validators").execute();

describeService("BlockchainService.VerifyChain", BlockchainService, ({ start, shared }) => {
  it.each<[reason: string, index: number, what: string, change: Change]>([
    ["HASH", 3, "data of a block", block(3, () => ({ data: bytesOf("forged") }))],
    ["LINK", 3, "prev_hash", block(3, () => ({ prev_hash: "0".repeat(64) }))],
    ["LINK", 3, "prev_hash, to an invalid hash,", block(3, () => ({ prev_hash: "?" }))],
    ["HASH", 3, "block_hash", block(3, () => ({ block_hash: "0".repeat(64) }))],
    ["HASH", 3, "timestamp", block(3, ({ timestamp_ms }) => ({ timestamp_ms: timestamp_ms + 1 }))],
    ["HASH", 3, "timestamp, to one before 1970,", block(3, () => ({ timestamp_ms: -1 }))],
    ["HASH", 3, "validator_address, to none,", block(3, () => ({ validator_address: "" }))],
    ["SIGNATURE", 3, "signature", block(3, ({ signature }) => ({ signature: flipBit(signature, 20) }))],
    ["SIGNATURE", 5, "signature, to none,", block(5, () => ({ signature: new Uint8Array() }))],
    ["SIGNATURE", 3, "data and block_hash, which match each other,", rehashed(3)],
    [
      "SIGNATURE",
      2,
      "blocks in two places, of which the first counts,",
      all(
        block(2, ({ signature }) => ({ signature: flipBit(signature, 20) })),
        block(4, () => ({ data: bytesOf("forged") })),
      ),
    ],
    ["INDEX", 3, "block in the middle, which was deleted,", without(3)],
    ["END", 5, "last block, which was deleted,", without(5)],
    ["END", 5, "last block, which was deleted, and the head, set back,", all(headBackTo(4), without(5))],
    ["END", 1, "blocks, which were all deleted,", without(1, 2, 3, 4, 5)],
    ["END", 6, "head, one further,", head({ chain_length: 7 })],
    ["END", 6, "head's hash", head({ head_hash: "0".repeat(64) })],
    ["END", 6, "head, set back while the blocks stay,", headBackTo(4)],
    ["END", 6, "head, which was deleted,", withoutHead],
    ["END", 6, "end, which has an extra block", forgedEnd],
    ["VALIDATOR", 1, "validator's key", validator((row) => ({ public_key: flipBit(row.public_key, 20) }))],
    ["VALIDATOR", 1, "validator's key, to none,", validator(() => ({ public_key: new Uint8Array() }))],
    ["VALIDATOR", 1, "validator, which was deleted,", withoutValidators],
  ])("reports %s for block %i after tampering with the %s", async (reason, index, _what, change) => {
    const server = await shared();
    await chainOfSix(server);
    const putBack = await server.tamper(keepTables);
    await server.tamper(change);
    const found = await server.client.verifyChain({});
    await server.tamper(putBack);
    const expected = { valid: false, firstInvalidIndex: index, blocksChecked: index, reason };
    expect(found).toMatchObject(expected);
    expect(await server.client.verifyChain({})).toMatchObject({ valid: true, blocksChecked: 6, reason: "" });
  });

  it("reports END for a last block replaced by a different validly signed block", async () => {
    const server = await start();
    await chainOfSix(server);
    const { client, tamper } = server;
    const putBack = await tamper(keepTables);
    const [signedFirst] = await addBlocks(client, 1);
    const replaced = await tamper((db) => readBlock(db, 6));
    await tamper(putBack);
    const { block: signedLater } = await client.addBlock({ data: bytesOf("another") });
    expect(signedLater?.prevHash).toBe(signedFirst?.prevHash);
    await tamper(block(6, () => replaced));
    const found = await client.verifyChain({});
    expect(found).toMatchObject({ valid: false, firstInvalidIndex: 6, blocksChecked: 6, reason: "END" });
  });

  it("verifies a chain longer than one read, and finds the one invalid block", async () => {
    const { client, tamper } = await start();
    await client.registerNode({});
    // The server accepts 320 concurrent calls per client.
    for (let made = 0; made < 620; made += 310)
      await Promise.all(
        Array.from({ length: 310 }, (_, i) => client.addBlock({ data: bytesOf(`${made + i}`) })),
      );
    expect(await client.verifyChain({})).toMatchObject({ valid: true, blocksChecked: 621 });
    await tamper(block(610, ({ signature }) => ({ signature: flipBit(signature, 20) })));
    const found = await client.verifyChain({});
    expect(found).toMatchObject({ firstInvalidIndex: 610, blocksChecked: 610, reason: "SIGNATURE" });
  });

  it("verifies the chain up to its head at the start, while blocks are added", async () => {
    const { client } = await start();
    await client.registerNode({});
    const adding = Promise.all(Array.from({ length: 60 }, () => client.addBlock({ data: bytesOf("x") })));
    const verdicts = await Promise.all(Array.from({ length: 10 }, () => client.verifyChain({})));
    await adding;
    expect(verdicts.map(({ valid, reason }) => [valid, reason])).toEqual(Array(10).fill([true, ""]));
  });
});

it("callers who wait for VerifyChain share a verification", async () => {
  let verifications = 0;
  const chain = {
    async readHead() {
      verifications += 1;
      return { length: 1, headHash: genesis.blockHash };
    },
    readBlocks: async () => [],
  };
  const service = blockchainService({ chain, provider: {}, store: { batch() {} } } as never);
  const verify = () => service.verifyChain({} as never, { signal: new AbortController().signal } as never);
  const found = await Promise.all(Array.from({ length: 100 }, verify));
  expect(found).toEqual(found.map(() => ({ valid: true, blocksChecked: 1, reason: "" })));
  expect(verifications).toBe(1);
});

it("verifyChain leaves no unhandled rejection when its caller leaves during a read", async () => {
  const uncaught = collectUncaught();
  const content = { ...genesis, index: 1, prevHash: genesis.blockHash };
  const first: Block = { ...content, blockHash: hashBlock(content) };
  const { promise: verifying, reject } = Promise.withResolvers<boolean>();
  const chain = {
    readHead: async () => ({ length: 3, headHash: "" }),
    findValidator: async () => ({ publicKey: new Uint8Array() }),
    async readBlocks(fromIndex: number) {
      if (fromIndex === 1) return [first];
      // The queue ends the waiting work of a caller who has left.
      reject(new Error("the caller left"));
      await new Promise(setImmediate);
      throw new Error("the caller left");
    },
  };
  const provider = { importPublicKey: () => ({}), unbounded: { verify: () => verifying } };
  await expect(verifyChain({ chain, provider } as never)).rejects.toThrow("the caller left");
  expect(uncaught).toEqual([]);
});

describeService("BlockchainService.AddBlock", BlockchainService, ({ start }) => {
  it.each<[string, Change]>([
    ["validator's key", validator((row) => ({ public_key: flipBit(row.public_key, 20) }))],
    ["validator's name", validator(() => ({ name: "mine" }))],
    ["head", head({ chain_length: 1 })],
  ])("adds nothing after tampering with the %s", async (_what, change) => {
    const server = await start();
    await chainOfSix(server);
    await server.close();
    const { client, tamper } = await start(server.database);
    await tamper(change);
    expect(await refusal(client.addBlock({ data: bytesOf("x") }))).toEqual(damaged);
    const blocks = await tamper((db) => db.selectFrom("blockchain_blocks").selectAll().execute());
    expect(blocks).toHaveLength(5);
  });

  it("signs with every other validator when one was changed", async () => {
    const { client, tamper } = await start();
    await client.registerNode({});
    await tamper(validator(() => ({ name: "mine" })));
    const { validatorAddress } = await client.registerNode({});
    expect(await refusal(client.addBlock({ data: bytesOf("x") }))).toEqual(damaged);
    const { block: added } = await client.addBlock({ data: bytesOf("x"), validatorAddress });
    expect(added?.index).toBe(1);
  });
});

it("AddBlock signs a block even though the cache evicted the validator's key", async () => {
  const provider = await createCryptoProvider("openssl");
  const store = await openTestStore(makeTemporaryDirectory(), provider);
  onTestFinished(async () => {
    await store.close();
    await provider.close();
  });
  const deps = { provider, store, chain: createChainStore(store), now: () => new Date() };
  const register = (name: string) =>
    registerNode(deps, create(RegisterNodeRequestSchema, { name }), systemCaller);
  const validators = [await register("one"), await register("two"), await register("three")];
  // With a cache of one key, each call evicts the previous call's key.
  const addBlock = createAddBlock(deps, createOpenKeys(store, provider, 1));
  const adding = validators.map(({ validatorAddress }) => {
    const request = { data: new Uint8Array([1]), validatorAddress: present(validatorAddress) };
    return addBlock(create(AddBlockRequestSchema, request), systemCaller);
  });
  expect(await Promise.all(adding)).toHaveLength(3);
});

/** Lets a server listen on a free port, and returns its address. */
async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns a local address where nothing listens. */
async function closedAddress(): Promise<string> {
  const server = createServer();
  const address = await listen(server);
  server.close();
  await once(server, "close");
  return address;
}

describeService("BlockchainService.ConnectPeer", BlockchainService, ({ client, start }) => {
  it("stores a peer's chain height, and when the peer was seen", async () => {
    const [{ client }, peer] = [await start(), await start()];
    await peer.client.registerNode({});
    await addBlocks(peer.client, 2);
    const beforeMs = Date.now();
    const { peer: first } = await client.connectPeer({ address: peer.authority });
    expect(first).toMatchObject({ peerStatus: "CONNECTED", height: 3 });
    expectTimeSince(beforeMs, first?.lastSeenAt);
    await addBlocks(peer.client, 1);
    expect((await client.connectPeer({ address: peer.authority })).peer?.height).toBe(4);
    await peer.close();
    const { peer: gone } = await client.connectPeer({ address: peer.authority });
    expect(gone).toMatchObject({ peerStatus: "UNREACHABLE", height: 4 });
    expect(gone?.lastSeenAt).toBeDefined();
    expect(await client.listPeers({})).toMatchObject({ peers: [gone], totalSize: 1 });
  });

  it("returns UNREACHABLE for a port without a listener", async () => {
    const address = await closedAddress();
    const { peer } = await client.connectPeer({ address });
    expect(peer).toMatchObject({ address, peerStatus: "UNREACHABLE" });
    expect([peer?.height, peer?.lastSeenAt]).toEqual([undefined, undefined]);
  });

  it("returns UNREACHABLE for a peer that reports no possible height, and leaves no connection open", async () => {
    const heights = [0, -1, 1.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY];
    const getHealth = () => ({ chainLength: heights.shift() ?? 1 });
    const routes = (router: ConnectRouter) => router.service(BlockchainService, { getHealth });
    const peer = http2.createServer(connectNodeAdapter({ routes }));
    onTestFinished(() => void peer.close());
    const address = await listen(peer);
    const shown: unknown[] = [];
    while (heights.length > 0) shown.push((await client.connectPeer({ address })).peer);
    expect(shown).toEqual(shown.map(() => expect.objectContaining({ peerStatus: "UNREACHABLE" })));
    expect((await client.connectPeer({ address })).peer).toMatchObject({ height: 1 });
    await expect.poll(() => promisify(peer.getConnections).call(peer)).toBe(0);
  });

  it("lists peers in order of first connection, page by page", async () => {
    const { client } = await start();
    const addresses: string[] = [];
    for (let i = 0; i < 3; i += 1) addresses.push(await closedAddress());
    for (const address of [...addresses, ...addresses.toReversed()]) await client.connectPeer({ address });
    const pages = await readPages(
      (pageToken) => client.listPeers({ pageSize: 2, pageToken }),
      ({ peers }) => peers.map(({ address }) => address),
    );
    expect(pages).toEqual({ rows: [...new Set(addresses)], sizes: [2, 1], totals: [3] });
  });
});
