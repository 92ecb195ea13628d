import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { serveApp } from "../../services/app-under-test.ts";
import { copySqlitePlace } from "../../support/on-both.ts";
import { runToEndHere } from "../../support/run-here.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

const timeout = 180_000;

/** Appends blocks over REST. */
async function addBlocks(url: string, count: number): Promise<void> {
  const post = async (path: string, body: unknown): Promise<void> => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(answer.status).toBe(200);
  };
  await post("/api/blockchain/register-node", {});
  for (let i = 0; i < count; i += 1) await post("/api/blockchain/add-block", { data: "aGVsbG8=" });
}

describe("chain verify", { timeout }, () => {
  /** A data directory left by a server, with a chain of 4 blocks. */
  const chainDir = makeTemporaryDirectory(afterAll);
  beforeAll(async () => {
    const { url, close } = await serveApp(readConfig(["--port", "0", "--data-dir", chainDir], {}));
    await addBlocks(url, 3);
    await close();
  }, timeout);

  it("reports that a chain is valid, and its length", async () => {
    expect(await runToEndHere(["chain", "verify", "--data-dir", chainDir])).toMatchObject({
      code: 0,
      stdout: "The chain is valid: 4 blocks.\n",
      stderr: expect.stringContaining("4 of 4 blocks verified"),
    });
  });

  it.each([
    ["SIGNATURE", "update blockchain_blocks set signature = zeroblob(3309) where block_index = 2"],
    ["HASH", "update blockchain_blocks set data = x'00' where block_index = 2"],
    ["LINK", "update blockchain_blocks set prev_hash = block_hash where block_index = 2"],
    ["INDEX", "delete from blockchain_blocks where block_index = 2"],
  ])("exits with 1 and names the first bad block and the reason: %s", async (reason, sql) => {
    const place = await copySqlitePlace(chainDir);
    await place.query(sql);
    const { code, stdout } = await runToEndHere(["chain", "verify", ...place.settings]);
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: expect.stringMatching(new RegExp(`^The chain is broken at block 2: ${reason}, .*\\n$`)),
    });
  });
});
