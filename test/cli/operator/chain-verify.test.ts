import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { callRest } from "../../services/answers.ts";
import { serveApp } from "../../services/app-under-test.ts";
import { copySqlitePlace } from "../../support/on-both.ts";
import { runToEndHere } from "../../support/run-here.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

const timeout = 180_000;

describe("chain verify", { timeout }, () => {
  /** A data directory left by a server, with a chain of 4 blocks. */
  const chainDir = makeTemporaryDirectory(afterAll);
  beforeAll(async () => {
    const { url, close } = await serveApp(readConfig(["--port", "0", "--data-dir", chainDir], {}));
    await callRest(url, "POST /api/blockchain/register-node", {});
    for (let i = 0; i < 3; i += 1)
      await callRest(url, "POST /api/blockchain/add-block", { data: "aGVsbG8=" });
    await close();
  }, timeout);

  it("reports that a chain is valid, and its length", async () => {
    expect(await runToEndHere(["chain", "verify", "--data-dir", chainDir])).toMatchObject({
      code: 0,
      stdout: "The chain is valid: 4 blocks.\n",
      stderr: expect.stringContaining("4 of 4 blocks verified"),
    });
  });

  it("exits with 1 and names the first bad block and the reason", async () => {
    const place = await copySqlitePlace(chainDir);
    await place.query("update blockchain_blocks set data = x'00' where block_index = 2");
    const { code, stdout } = await runToEndHere(["chain", "verify", ...place.settings]);
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^The chain is broken at block 2: HASH, .*\n$/),
    ]);
  });
});
