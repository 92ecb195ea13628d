/** tlog.LogService: checkpoints, tiles and proofs from the reader's perspective. */
import { hash } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { hashLeaf } from "../../../src/merkle/hashes.ts";
import { present } from "../../../test/services/answers.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { parseCheckpoint } from "../checkpoint.ts";
import { parseNote } from "../note.ts";
import { parseVerifierKey } from "../verifier-keys.ts";
import { verifyNote } from "../verify-note.ts";
import { verifyConsistency, verifyInclusion } from "../verify-proofs.ts";
import { awaitSize, fetchNote, type LogServer, startLogServer, writeUses } from "./log-server.ts";

const bytesOf = async (response: Response): Promise<Uint8Array> =>
  new Uint8Array(await response.arrayBuffer());

const atEnd = endAfterAll();
/** Has published seven audit entries. */
let server: LogServer;
beforeAll(async () => {
  server = await startLogServer([], undefined, atEnd);
  await writeUses(server, 7);
  await awaitSize(server.url, 7);
}, 180_000);

describe("a log's checkpoint", { timeout: 180_000 }, () => {
  it("is a note that verifies with each key from ListLogs", async () => {
    const { bytes, origin } = await awaitSize(server.url, 7);
    const { logs } = await server.logs.listLogs({});
    expect(logs.map(({ log }) => log)).toEqual(["audit", "blockchain"]);
    const audit = present(logs[0]);
    expect(audit.origin).toBe(origin);
    expect(origin).toMatch(/^quantum-safe-playground\/[0-9a-f]{16}\/audit$/);
    const provider = await createCryptoProvider("openssl");
    for (const text of audit.verifierKeys)
      expect(await verifyNote(provider, parseNote(bytes), parseVerifierKey(text))).toMatchObject({
        keyName: origin,
      });
    expect(audit.verifierKeys).toHaveLength(3);
    await provider.close();
  });

  it("is text over REST, and the same bytes over gRPC", async () => {
    const response = await fetch(`${server.url}/api/logs/audit/checkpoint`);
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-cache");
    const { checkpoint } = await server.logs.getCheckpoint({ log: "audit" });
    expect(Uint8Array.from(present(checkpoint).data)).toEqual(await bytesOf(response));
  });

  it("appears about a second after an entry, without a request", async () => {
    const server = await startLogServer();
    await writeUses(server, 2);
    await expect
      .poll(async () => (await fetch(`${server.url}/api/logs/audit/tile/0/000.p/2`)).status)
      .toBe(200);
  });

  it("has the origin from --log-origin, which also names the keys", async () => {
    const server = await startLogServer(["--log-origin", "logs.example/api/logs"]);
    const { logs } = await server.logs.listLogs({});
    expect(logs.map(({ origin }) => origin)).toEqual([
      "logs.example/api/logs/audit",
      "logs.example/api/logs/blockchain",
    ]);
    expect(parseNote(await fetchNote(server.url)).text).toMatch(/^logs\.example\/api\/logs\/audit\n0\n/);
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
    expect((await fetch(`${server.url}/api/logs/nothing/checkpoint`)).status).toBe(404);
    expect(await refusal(server.logs.getCheckpoint({ log: "toString" }))).toMatchObject({
      code: "NotFound",
      reason: "LOG_NOT_FOUND",
    });
  });
});

describe("a tile", { timeout: 180_000 }, () => {
  it("contains leaf hashes, and its entries contain audit entry hashes", async () => {
    const { auditLog } = await server.kms.getAuditLog({});
    const leaves = auditLog.map(({ entryHash }) => Buffer.from(entryHash, "hex"));
    const tile = await fetch(`${server.url}/api/logs/audit/tile/0/000.p/7`);
    expect(await bytesOf(tile)).toEqual(Uint8Array.from(Buffer.concat(leaves.map(hashLeaf))));
    expect(tile.headers.get("content-type")).toBe("application/octet-stream");
    expect(tile.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    const bundle = await fetch(`${server.url}/api/logs/audit/tile/entries/000.p/7`);
    const expected = Buffer.concat(leaves.flatMap((leaf) => [Buffer.of(0, 32), leaf]));
    expect(await bytesOf(bundle)).toEqual(Uint8Array.from(expected));
  });

  it("has any width up to the published size", async () => {
    for (const width of [1, 2, 3, 4, 5, 6, 7]) {
      const { tile } = await server.logs.getTile({ log: "audit", path: `0/000.p/${width}` });
      expect(present(tile).data).toHaveLength(32 * width);
    }
  });

  it("has the same path if its slashes are encoded, as generated clients send them", async () => {
    for (const path of ["0%2F000.p%2F7", "0%2f000.p/7"])
      expect((await fetch(`${server.url}/api/logs/audit/tile/${path}`)).status).toBe(200);
  });

  it("in a different form or beyond the checkpoint is not found", async () => {
    for (const path of wrongPaths) {
      const response = await fetch(`${server.url}/api/logs/audit/tile/${path}`);
      const { code } = (await response.json()) as { code: string };
      expect([path, response.status, code]).toEqual([path, 404, "NOT_FOUND"]);
    }
  });
});

/** tile-paths.test.ts covers all rejected forms. */
const wrongPaths = [
  "0/0",
  "0/000",
  "0/000.p/8",
  "0/001.p/1",
  "1/000.p/1",
  "entries/000.p/8",
  "entries",
  "0%252F000.p%252F1",
  "%30/000.p/1%00",
  "..%2F0/000.p/1",
];

describe("a proof", { timeout: 180_000 }, () => {
  it("of inclusion verifies against the checkpoint that comes with it", async () => {
    const { auditLog } = await server.kms.getAuditLog({});
    for (const index of [0, 3, 6]) {
      const proof = await server.logs.getInclusionProof({ log: "audit", leafIndex: index });
      const { size, root } = parseCheckpoint(parseNote(Buffer.from(proof.checkpoint)).text);
      expect(Buffer.from(proof.leaf).toString("hex")).toBe(auditLog[index]?.entryHash);
      const leafHash = hashLeaf(proof.leaf);
      expect(verifyInclusion({ index, size, leafHash, hashes: proof.hashes, root })).toBe(true);
      expect(Uint8Array.from(proof.rootHash)).toEqual(root);
    }
  });

  it("of consistency verifies between all sizes, with the trees' roots", async () => {
    const newest = await awaitSize(server.url, 7);
    const rootOf = async (treeSize: number) =>
      (await server.logs.getInclusionProof({ log: "audit", leafIndex: 0, treeSize })).rootHash;
    for (const from of [1, 2, 3, 4, 5, 6, 7]) {
      const { hashes, toSize } = await server.logs.getConsistencyProof({ log: "audit", fromSize: from });
      const proof = { from, to: toSize, fromRoot: await rootOf(from), toRoot: newest.root, hashes };
      expect(verifyConsistency(proof)).toBe(true);
    }
    expect((await server.logs.getConsistencyProof({ log: "audit", fromSize: 0 })).hashes).toEqual([]);
  });

  it("beyond the tree or the published size is refused", async () => {
    const log = "audit";
    const { getInclusionProof, getConsistencyProof } = server.logs;
    const leaf = { code: "OutOfRange", reason: "LEAF_OUT_OF_RANGE" };
    const size = { code: "OutOfRange", reason: "TREE_SIZE_OUT_OF_RANGE" };
    const invalid = { code: "InvalidArgument", reason: "FIELD_INVALID" };
    const refused = [
      [await refusal(getInclusionProof({ log, leafIndex: 7 })), leaf],
      [await refusal(getInclusionProof({ log, leafIndex: 2, treeSize: 2 })), leaf],
      [await refusal(getInclusionProof({ log, leafIndex: 0, treeSize: 8 })), size],
      [await refusal(getInclusionProof({ log, leafIndex: 0.5 })), invalid],
      [await refusal(getConsistencyProof({ log, fromSize: 8 })), size],
      [await refusal(getConsistencyProof({ log, fromSize: 3, toSize: 2 })), size],
    ] as const;
    for (const [found, expected] of refused) expect(found).toMatchObject(expected);
  });
});

describe("the block log", { timeout: 180_000 }, () => {
  it("proves a block to a reader with a checkpoint and no other block", async () => {
    const server = await startLogServer();
    await server.chain.registerNode({ name: "north" });
    const blocks = [];
    for (const data of ["one", "two", "three"])
      blocks.push(present((await server.chain.addBlock({ data: Buffer.from(data) })).block));
    const { root, size } = await awaitSize(server.url, 4, "blockchain");
    expect(size).toBe(4);
    for (const block of blocks) {
      const proof = await server.logs.getInclusionProof({
        log: "blockchain",
        leafIndex: block.index,
        treeSize: size,
      });
      const leafHash = hashLeaf(Buffer.from(block.blockHash, "hex"));
      expect(verifyInclusion({ index: block.index, size, leafHash, hashes: proof.hashes, root })).toBe(true);
    }
  });

  it("starts with genesis", async () => {
    const server = await startLogServer();
    const proof = await server.logs.getInclusionProof({ log: "blockchain", leafIndex: 0 });
    const { blocks } = await server.chain.getChain({});
    expect(proof.treeSize).toBe(1);
    expect(Buffer.from(proof.leaf).toString("hex")).toBe(blocks[0]?.blockHash);
  });
});

describe("audit entries", { timeout: 180_000 }, () => {
  it("are not published by default", async () => {
    expect(await refusal(server.logs.listLogEntries({ log: "audit" }))).toMatchObject({
      code: "PermissionDenied",
      reason: "LOG_ENTRIES_PRIVATE",
    });
    expect((await fetch(`${server.url}/api/logs/audit/entries`)).status).toBe(403);
  });

  it("hash to the leaves with --audit-log-public, in pages, up to the checkpoint", async () => {
    const server = await startLogServer(["--audit-log-public"]);
    await writeUses(server, 5);
    await awaitSize(server.url, 5);
    const leaves = [];
    let pageToken = "";
    do {
      const page = await server.logs.listLogEntries({ log: "audit", pageSize: 2, pageToken });
      expect(page.totalSize).toBe(5);
      for (const { leafIndex, canonicalJson } of page.entries) {
        expect(JSON.parse(canonicalJson)).toMatchObject({ sequence: leafIndex + 1 });
        leaves.push(hash("sha256", canonicalJson));
      }
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    const { auditLog } = await server.kms.getAuditLog({});
    expect(leaves).toEqual(auditLog.map(({ entryHash }) => entryHash));
    expect(await refusal(server.logs.listLogEntries({ log: "blockchain" }))).toMatchObject({
      code: "NotFound",
      reason: "LOG_NOT_FOUND",
    });
  });
});
