import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type KmsServer, startKmsServer } from "../../faults/kms-server.ts";
import { describeSmallDisks, makeSmallDisk, waitForReserve } from "../../faults/small-disk.ts";
import { callRest, present } from "../../services/answers.ts";
import { flipBit } from "../../support/bytes.ts";
import { type Run, runToEndHere } from "../../support/run-here.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

const timeout = 180_000;
const keys = 12;

it("a store whose server was killed, with one flipped bit in its log starts again after store cut-log without the last keys, and a checkpoint reveals the loss", {
  timeout,
}, async () => {
  const { dataDir, log, checkpoint } = await leaveKilled();
  const path = join(dataDir, "qsp.db");
  const damaged = flipBit(log, Math.floor(log.length / 2));
  writeFileSync(`${path}-wal`, damaged);
  const { code: refused, stderr } = await runToEndHere(["serve", "--port", "0", "--data-dir", dataDir]);
  expect([refused, stderr]).toEqual([
    2,
    expect.stringMatching(/^qsp: [^\n]*qsp\.db-wal is damaged [^\n]*qsp store cut-log\n$/),
  ]);
  expect(readFileSync(`${path}-wal`).equals(damaged)).toBe(true);

  const { code, stdout } = await runToEndHere(["store", "cut-log", "--data-dir", dataDir]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/At least \d+ confirmed transactions are lost/);
  const kept = readdirSync(dataDir).filter((name) => name.includes(".damaged-"));
  expect(kept).toEqual([expect.stringMatching(/\d$/), expect.stringMatching(/-wal$/)]);
  expect(readFileSync(join(dataDir, present(kept[1]))).equals(damaged)).toBe(true);

  const verify = (...words: string[]): Promise<Run> => runToEndHere([...words, "--data-dir", dataDir]);
  expect(await verify("audit", "verify")).toMatchObject({ code: 0 });
  expect(await verify("audit", "verify", checkpoint)).toMatchObject({ code: 1 });
  const server = await startKmsServer({ dataDir });
  const { keys: left } = await server.kms.listKeys({ pageSize: keys });
  expect(left.length).toBeLessThan(keys);
  expect(await server.kms.createKey({})).toMatchObject({ status: "success" });
});

describe("store cut-log", { timeout }, () => {
  it("changes nothing in an undamaged log", async () => {
    const { dataDir, log } = await leaveKilled();
    const before = readdirSync(dataDir);
    expect(await runToEndHere(["store", "cut-log", "--data-dir", dataDir])).toMatchObject({ code: 0 });
    expect(readdirSync(dataDir)).toEqual(before);
    expect(readFileSync(join(dataDir, "qsp.db-wal")).equals(log)).toBe(true);
  });

  it("refuses a store that a server uses", async () => {
    const { dataDir, server } = await startWithKeys();
    const path = join(dataDir, "qsp.db-wal");
    const log = readFileSync(path);
    writeFileSync(path, flipBit(log, Math.floor(log.length / 2)));
    await waitForReserve(dataDir);
    const before = readdirSync(dataDir);
    expect(await runToEndHere(["store", "cut-log", "--data-dir", dataDir])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^qsp: another program uses the store [^\n]*; stop it first\n$/),
    });
    expect(readdirSync(dataDir)).toEqual(before);
    await server.stop("SIGKILL");
  });
});

describeSmallDisks("store cut-log on a full disk", () => {
  it.each([1.5, 2.05])(
    "keeps the damaged log, whether the copies fit or not: %d logs",
    { timeout },
    async (logs) => {
      const { dataDir, log } = await leaveKilled();
      const damaged = flipBit(log, log.length - 100_000);
      const disk = makeSmallDisk(
        String(Math.ceil(statSync(join(dataDir, "qsp.db")).size * 2 + logs * log.length)),
      );
      copyFileSync(join(dataDir, "qsp.db"), join(disk, "qsp.db"));
      writeFileSync(join(disk, "qsp.db-wal"), damaged, { mode: 0o600 });
      expect(await runToEndHere(["store", "cut-log", "--data-dir", disk])).toMatchObject({
        code: 4,
        stderr: `qsp: the disk of ${join(disk, "qsp.db")} is full; free some space on it\n`,
      });
      expect(readdirSync(disk).sort()).toEqual(["qsp.db", "qsp.db-wal"]);
      expect(readFileSync(join(disk, "qsp.db-wal")).equals(damaged)).toBe(true);
    },
  );
});

async function startWithKeys(): Promise<{ dataDir: string; server: KmsServer; checkpoint: string }> {
  const dataDir = makeTemporaryDirectory();
  const server = await startKmsServer({ dataDir });
  for (let i = 0; i < keys; i += 1) await server.kms.createKey({});
  const checkpoint = join(makeTemporaryDirectory(), "checkpoint.json");
  const { text } = await callRest(server.url, "POST /api/kms/verify-audit", {});
  writeFileSync(checkpoint, text);
  return { dataDir, server, checkpoint };
}

async function leaveKilled(): Promise<{ dataDir: string; log: Buffer; checkpoint: string }> {
  const { dataDir, server, checkpoint } = await startWithKeys();
  await server.stop("SIGKILL");
  return { dataDir, log: readFileSync(join(dataDir, "qsp.db-wal")), checkpoint };
}
