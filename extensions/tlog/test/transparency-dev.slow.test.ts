/**
 * The verifiable logs, read with transparency.dev's unmodified libraries: formats (checkpoints and notes),
 * tessera (tiles, entry bundles, and proofs from tiles) and merkle (verification).
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { isMissing } from "../../../test/interop/tools.ts";
import { present } from "../../../test/services/answers.ts";
import { startLineClient } from "../../../test/support/line-client.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { awaitSize, type LogServer, startLogServer } from "./log-server.ts";

/** One round's findings. */
interface Found {
  readonly size: number;
  readonly before: number;
  /** The consistency proof's hashes. */
  readonly consistency: number;
  /** IDs of the keys that verified the checkpoint. */
  readonly signers: readonly number[];
  readonly included: number;
  /** Base64. */
  readonly leaves: readonly string[];
}

const program = join(makeTemporaryDirectory(afterAll), "tlog");

/**
 * Starts a reader of a log.
 *
 * @returns a function that reads once
 */
async function startReader(server: LogServer, name: string): Promise<() => Promise<Found>> {
  const { logs } = await server.logs.listLogs({});
  const { verifierKeys } = present(logs.find(({ log }) => log === name));
  // The libraries do not support type 0xff.
  const args = [`${server.url}/api/logs/${name}/`, ...verifierKeys.slice(0, 2)];
  const { ask, end } = startLineClient<string, Found>(program, args);
  onTestFinished(end);
  return () => ask("read");
}

const toHex = (base64: string): string => Buffer.from(base64, "base64").toString("hex");

describe.skipIf(isMissing("go"))("transparency.dev's clients", { timeout: 300_000 }, () => {
  beforeAll(() => {
    const cwd = join(import.meta.dirname, "go-tlog");
    const { status, stderr } = spawnSync("go", ["build", "-o", program, "."], { cwd, encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
  }, 300_000);

  it("follow the audit log while it grows, and verify each leaf and that nothing was changed", async () => {
    const server = await startLogServer();
    const { keyId } = present((await server.kms.createKey({})).result);
    const read = await startReader(server, "audit");
    await awaitSize(server.url, 1);
    let { size: written } = await read();
    for (const added of [3, 150, 101, 1, 1, 40]) {
      const before = written;
      await Promise.all(
        Array.from({ length: added }, () => server.kms.sign({ keyId, data: Buffer.from("use") })),
      );
      written += added;
      await awaitSize(server.url, written);
      const found = await read();
      expect(found).toMatchObject({ size: written, included: written, before, signers: { length: 2 } });
      expect(found.consistency).toBeGreaterThan(0);
    }
    const { auditLog } = await server.kms.getAuditLog({});
    const { leaves } = await read();
    expect(leaves.map(toHex)).toEqual(auditLog.map(({ entryHash }) => entryHash));
  });

  it("read the block log, whose leaves are the block hashes", async () => {
    const server = await startLogServer();
    await server.chain.registerNode({ name: "north" });
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => server.chain.addBlock({ data: Buffer.from(`block ${i}`) })),
    );
    await awaitSize(server.url, 21, "blockchain");
    const { leaves, included } = await (await startReader(server, "blockchain"))();
    const { blocks } = await server.chain.getChain({});
    expect(included).toBe(21);
    expect(leaves.map(toHex)).toEqual(blocks.map(({ blockHash }) => blockHash));
  });
});
