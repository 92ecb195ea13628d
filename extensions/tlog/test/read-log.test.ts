/** tlog.LogService: checkpoints, tiles and proofs from the reader's perspective. */
import { hash } from "node:crypto";
import { sql } from "kysely";
import { beforeAll, describe, expect, it } from "vitest";
import { hashLeaf } from "../../../src/merkle/hashes.ts";
import { present, readPages } from "../../../test/services/answers.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { outcomeOf } from "../../../test/support/refusal.ts";
import { parseCheckpoint } from "../checkpoint.ts";
import { parseNote } from "../note.ts";
import { verifyConsistency, verifyInclusion } from "../verify-proofs.ts";
import { awaitSize, fetchNote, type LogServer, startLogServer, writeUses } from "./log-server.ts";

const timeout = 180_000;
const log = "audit";
const atEnd = endAfterAll();
/** Has published seven audit entries. */
let server: LogServer;
beforeAll(async () => {
  server = await startLogServer([], undefined, atEnd);
  await writeUses(server, 7);
  await awaitSize(server.url, 7);
}, timeout);

const read = (path: string) => fetch(`${server.url}/api/logs/audit/${path}`);
const fromHex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "hex"));
const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
/** The audit log's leaves. */
const readLeaves = async ({ kms } = server) =>
  (await kms.getAuditLog({})).auditLog.map(({ entryHash }) => fromHex(entryHash));

describe("a log's checkpoint", { timeout }, () => {
  // verbs.test.ts verifies it with each of the keys.
  it("is text over REST, and the same bytes over gRPC", async () => {
    const response = await read("checkpoint");
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-cache");
    const { checkpoint } = await server.logs.getCheckpoint({ log });
    expect(Uint8Array.from(present(checkpoint).data)).toEqual(await response.bytes());
  });

  it("appears about a second after an entry, without a request", async () => {
    const server = await startLogServer();
    await writeUses(server, 2);
    const read = () => fetch(`${server.url}/api/logs/audit/tile/0/000.p/2`);
    await expect.poll(async () => (await read()).status).toBe(200);
  });

  it.each([
    ["of this store", [], /^quantum-safe-playground\/[0-9a-f]{16}$/],
    ["from --log-origin", ["--log-origin", "logs.example/api/logs"], /^logs\.example\/api\/logs$/],
  ] as const)("has the origin %s, which also names the keys", async (_, flags, prefix) => {
    const server = await startLogServer(flags);
    const { logs } = await server.logs.listLogs({});
    expect(logs.map(({ log, origin }) => [log, origin.replace(/\/\w+$/, "")])).toEqual([
      ["audit", expect.stringMatching(prefix)],
      ["blockchain", expect.stringMatching(prefix)],
    ]);
    const { origin, verifierKeys } = present(logs[0]);
    expect(verifierKeys.map((key) => key.split("+")[0])).toEqual(Array(3).fill(origin));
    expect(parseNote(await fetchNote(server.url)).text.split("\n")[0]).toBe(origin);
  });

  it("has the same keys after a restart, and covers earlier entries", async () => {
    const first = await startLogServer();
    await writeUses(first, 2);
    const before = await first.logs.listLogs({});
    await first.close();
    const second = await startLogServer([], first.dataDir);
    expect(await second.logs.listLogs({})).toEqual(before);
    expect(parseCheckpoint(parseNote(await fetchNote(second.url)).text).size).toBe(2);
  });

  it("is refused for an unknown log", async () => {
    expect(await outcomeOf(server.logs.getCheckpoint({ log: "toString" }))).toBe("LOG_NOT_FOUND");
  });

  it("is counted and measured in the log's metrics", async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    expect(text).toContain('qsp_log_entries{log="audit"} 7\n');
    expect(text).toContain('qsp_log_published_entries{log="audit"} 7\n');
    expect(text).toMatch(/qsp_log_sign_seconds_count\{log="audit"\} [1-9]/);
    expect(text).toContain("# TYPE qsp_log_cosignatures_total counter");
  });
});

describe("a tile", { timeout }, () => {
  it("contains leaf hashes, and its entries contain audit entry hashes", async () => {
    const leaves = await readLeaves();
    const tile = await read("tile/0/000.p/7");
    const hashes = Uint8Array.from(Buffer.concat(leaves.map(hashLeaf)));
    expect(await tile.bytes()).toEqual(hashes);
    expect(await (await read("tile/0/000.p/3")).bytes()).toEqual(hashes.subarray(0, 3 * 32));
    expect(tile.headers.get("content-type")).toBe("application/octet-stream");
    expect(tile.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    const expected = Buffer.concat(leaves.flatMap((leaf) => [Buffer.of(0, 32), leaf]));
    expect(await (await read("tile/entries/000.p/7")).bytes()).toEqual(Uint8Array.from(expected));
  });

  // As generated clients send them.
  it.each(["0%2F000.p%2F7", "0%2f000.p/7"])("is found at %s, whose slashes are encoded", async (path) => {
    expect((await read(`tile/${path}`)).status).toBe(200);
  });

  // formats.test.ts covers all rejected forms.
  it.each([
    ...["0/0", "0/000", "0/000.p/8", "0/001.p/1", "1/000.p/1", "entries/000.p/8", "entries"],
    ...["0%252F000.p%252F1", "%30/000.p/1%00", "..%2F0/000.p/1"],
  ])("in a different form or beyond the checkpoint is not found: %s", async (path) => {
    const response = await read(`tile/${path}`);
    expect([response.status, await response.json()]).toMatchObject([404, { code: "NOT_FOUND" }]);
  });
});

describe("a proof", { timeout }, () => {
  it("of inclusion verifies against the checkpoint that comes with it", async () => {
    const leaves = await readLeaves();
    for (const index of [0, 3, 6]) {
      const proof = await server.logs.getInclusionProof({ log, leafIndex: index });
      const { size, root } = parseCheckpoint(parseNote(Buffer.from(proof.checkpoint)).text);
      expect([proof.leaf, proof.rootHash].map(toHex)).toEqual([leaves[index] ?? root, root].map(toHex));
      const leafHash = hashLeaf(proof.leaf);
      expect(verifyInclusion({ index, size, leafHash, hashes: proof.hashes, root })).toBe(true);
    }
  });

  it("of consistency verifies between all sizes, with the trees' roots", async () => {
    const rootOf = async (treeSize: number) =>
      (await server.logs.getInclusionProof({ log, leafIndex: 0, treeSize })).rootHash;
    const toRoot = await rootOf(7);
    for (const from of [1, 2, 3, 4, 5, 6, 7]) {
      const { hashes, toSize: to } = await server.logs.getConsistencyProof({ log, fromSize: from });
      expect(verifyConsistency({ from, to, fromRoot: await rootOf(from), toRoot, hashes })).toBe(true);
    }
    expect((await server.logs.getConsistencyProof({ log, fromSize: 0 })).hashes).toEqual([]);
  });

  it.each([
    ["LEAF_OUT_OF_RANGE", { leafIndex: 7 }],
    ["LEAF_OUT_OF_RANGE", { leafIndex: 2, treeSize: 2 }],
    ["TREE_SIZE_OUT_OF_RANGE", { leafIndex: 0, treeSize: 8 }],
    ["FIELD_INVALID", { leafIndex: 0.5 }],
    ["TREE_SIZE_OUT_OF_RANGE", { fromSize: 8 }],
    ["TREE_SIZE_OUT_OF_RANGE", { fromSize: 3, toSize: 2 }],
  ])("beyond the tree or the published size is refused with %s: %j", async (reason, request) => {
    const { getInclusionProof, getConsistencyProof } = server.logs;
    const prove = "leafIndex" in request ? getInclusionProof : getConsistencyProof;
    expect(await outcomeOf(prove({ log, ...request }))).toBe(reason);
  });
});

describe("the block log", { timeout }, () => {
  /** A server with genesis and nine blocks, none of which is in a checkpoint. */
  async function makeChain() {
    const server = await startLogServer(["--services", "blockchain"]);
    await server.chain.registerNode({ name: "north" });
    for (let i = 1; i < 10; i++) await server.chain.addBlock({ data: Buffer.from(`block ${i}`) });
    return server;
  }

  it("proves a block to a reader with a checkpoint and no other block", async () => {
    const made = await makeChain();
    await made.close();
    const { url, logs, chain } = await startLogServer([], made.dataDir);
    const { root, size } = await awaitSize(url, 10, "blockchain");
    const { blocks } = await chain.getChain({});
    expect([size, blocks.length]).toEqual([10, 10]);
    for (const { index, blockHash } of blocks) {
      const proof = { log: "blockchain", leafIndex: index, treeSize: size };
      const { hashes } = await logs.getInclusionProof(proof);
      const leafHash = hashLeaf(fromHex(blockHash));
      expect(verifyInclusion({ index, size, leafHash, hashes, root })).toBe(true);
    }
  });

  const tagged = "aa".repeat(32);
  it.each([
    ["a block's data", "update blockchain_blocks set data = x'00' where block_index = 4"],
    ["a block's hash", `update blockchain_blocks set block_hash = '${tagged}' where block_index = 4`],
    ["the last block's hash", `update blockchain_blocks set block_hash = '${tagged}' where block_index = 9`],
    ["a block's link", `update blockchain_blocks set prev_hash = '${tagged}' where block_index = 4`],
    ["a missing block", "delete from blockchain_blocks where block_index = 4"],
    ["a missing last block", "delete from blockchain_blocks where block_index = 9"],
    ["the end of the chain", "update blockchain_head set chain_length = 9"],
  ])("gets no checkpoint after a change to %s", async (_, change) => {
    const made = await makeChain();
    await made.close();
    await made.tamper((db) => sql.raw(change).execute(db));
    const { url } = await startLogServer([], made.dataDir);
    await expect(fetchNote(url, "blockchain")).rejects.toThrow(/RECORD_DAMAGED|STORE_DAMAGED/);
  });
});

describe("audit entries", { timeout }, () => {
  it("are not published by default", async () => {
    expect(await outcomeOf(server.logs.listLogEntries({ log }))).toBe("LOG_ENTRIES_PRIVATE");
  });

  it("hash to the leaves with --audit-log-public, in pages, up to the checkpoint", async () => {
    const server = await startLogServer(["--audit-log-public"]);
    await writeUses(server, 5);
    await awaitSize(server.url, 5);
    const { rows, totals } = await readPages(
      (pageToken) => server.logs.listLogEntries({ log, pageSize: 2, pageToken }),
      ({ entries }) => entries,
    );
    expect(totals).toEqual([5]);
    expect(rows.map(({ canonicalJson }) => JSON.parse(canonicalJson).sequence)).toEqual([1, 2, 3, 4, 5]);
    expect(rows.map(({ leafIndex }) => leafIndex)).toEqual([0, 1, 2, 3, 4]);
    const leaves = await readLeaves(server);
    expect(rows.map(({ canonicalJson }) => hash("sha256", canonicalJson))).toEqual(leaves.map(toHex));
    expect(await outcomeOf(server.logs.listLogEntries({ log: "blockchain" }))).toBe("LOG_NOT_FOUND");
  });
});
