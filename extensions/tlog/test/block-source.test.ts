/** The block log's leaves: only blocks that the server wrote become leaves. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { awaitSize, fetchNote, startLogServer } from "./log-server.ts";

/** A stopped server with ten blocks, none of which is in a checkpoint. */
async function makeChain() {
  const server = await startLogServer(["--services", "blockchain"]);
  await server.chain.registerNode({ name: "north" });
  for (let i = 1; i < 10; i++) await server.chain.addBlock({ data: Buffer.from(`block ${i}`) });
  await server.close();
  return server.dataDir;
}

function change(dataDir: string, sql: string): void {
  const database = new DatabaseSync(join(dataDir, "qsp.db"));
  database.exec(sql);
  database.close();
}

const tagged = "aa".repeat(32);

describe("a chain of blocks", { timeout: 180_000 }, () => {
  it("becomes a log if it is intact", async () => {
    const server = await startLogServer([], await makeChain());
    expect((await awaitSize(server.url, 10, "blockchain")).size).toBe(10);
  });

  it.each([
    ["a block's data", "update blockchain_blocks set data = x'00' where block_index = 4"],
    ["a block's hash", `update blockchain_blocks set block_hash = '${tagged}' where block_index = 4`],
    ["the last block's hash", `update blockchain_blocks set block_hash = '${tagged}' where block_index = 9`],
    ["a block's link", `update blockchain_blocks set prev_hash = '${tagged}' where block_index = 4`],
    ["a missing block", "delete from blockchain_blocks where block_index = 4"],
    ["a missing last block", "delete from blockchain_blocks where block_index = 9"],
    ["the end of the chain", "update blockchain_head set chain_length = 9"],
  ])("gets no checkpoint after a change to %s", async (_, sql) => {
    const dataDir = await makeChain();
    change(dataDir, sql);
    const server = await startLogServer([], dataDir);
    await expect(fetchNote(server.url, "blockchain")).rejects.toThrow(/RECORD_DAMAGED|STORE_DAMAGED/);
  });
});
