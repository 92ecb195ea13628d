import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, watch } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { main } from "../support/program.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { createEvidence, type Evidence, type Failure } from "./evidence.ts";
import { findContradictions } from "./judge.ts";
import { type KmsServer, killAgainAndAgain, startKmsServer, timeoutOf } from "./kms-server.ts";
import { startLoad } from "./load.ts";
import { createRandom, type Random } from "./mutations.ts";

/** Number of kills; QSP_TEST_KILLS=100 for a long run. */
const kills = Number(process.env.QSP_TEST_KILLS ?? 2);
const fewKills = Math.ceil(kills / 2);
const seed = Number(process.env.QSP_TEST_SEED ?? 20261122);

describe(`the program, killed with -9 at random moments under load (seed ${seed})`, () => {
  it(`keeps everything that it acknowledged over ${kills} kills, on SQLite`, {
    timeout: timeoutOf(kills),
  }, async () => {
    expect(await killUnderLoad(kills, [])).toEqual({ contradictions: [], ...everythingHappened });
  });

  it(`leaves a store that the next start opens when killed ${fewKills} times while creating it`, {
    timeout: timeoutOf(fewKills),
  }, async () => {
    const random = createRandom(seed);
    for (let kill = 1; kill <= fewKills; kill += 1) {
      const dataDir = makeTemporaryDirectory();
      await killAfterChanges(dataDir, 1 + random.below(changesOfAStart));
      const server = await startKmsServer({ dataDir });
      expect(await server.kms.createKey({})).toMatchObject({ status: "success" });
      expect(await server.kms.verifyAuditLog({})).toMatchObject({ valid: true, entries: 1 });
      await server.stop("SIGKILL");
    }
  });
});

describePostgres(`the program, killed with -9 at random moments under load (seed ${seed})`, () => {
  it(`keeps everything that it acknowledged over ${fewKills} kills, on PostgreSQL`, {
    timeout: timeoutOf(fewKills),
  }, async () => {
    const databaseUrl = await freshDatabaseUrl();
    const outcome = await killUnderLoad(fewKills, ["--database-url", databaseUrl]);
    expect(outcome).toEqual({ contradictions: [], ...everythingHappened });
  });
});

/** What a load must have achieved for the test to prove anything. */
const everythingHappened = { created: true, signed: true, verified: true, rotated: true, destroyed: true };

/** Returns the contradictions after the first kill that caused any, and the number of acknowledged operations. */
async function killUnderLoad(times: number, args: readonly string[]) {
  const evidence = createEvidence();
  const random = createRandom(seed);
  const contradictions = await killAgainAndAgain(times, args, {
    use: (server) => useUntilKilled(server, evidence, random),
    judge: (kms) => findContradictions(evidence, kms),
  });
  const keys = [...evidence.keys.values()];
  return {
    contradictions,
    created: keys.length > 0,
    signed: keys.some(({ signatures }) => signatures.least > 0),
    verified: keys.some(({ verifications }) => verifications.least > 0),
    rotated: keys.some(({ rotated }) => rotated === "yes"),
    destroyed: keys.some(({ destroyed }) => destroyed === "yes"),
  };
}

/** Returns the contradictions before the kill. */
async function useUntilKilled(server: KmsServer, evidence: Evidence, random: Random): Promise<string[]> {
  const load = startLoad({ evidence, servers: [server], random });
  await load.answers(1 + random.below(400));
  // At any moment, not only right after an answer, which always follows a commit.
  await setTimeout(random.below(20));
  const killedMs = performance.now();
  const exit = server.stop("SIGKILL");
  await load.stop();
  const { stderr } = await exit;
  const early = evidence.failures.splice(0).filter(({ endedMs }) => endedMs < killedMs);
  return [...early.map(describeFailure), ...stderr.split("\n").filter((line) => line.includes('"level":50'))];
}

function describeFailure({ rpc, code, reason }: Failure): string {
  return `${rpc} failed with ${code} ${reason} before the kill`;
}

/** Approximate number of changes that a first start makes in its data directory, as inotify counts them. */
const changesOfAStart = 42;

/** Kills a first start after the given number of changes. */
async function killAfterChanges(dataDir: string, changes: number): Promise<void> {
  const watcher = watch(dataDir);
  let seen = 0;
  const enough = new Promise<void>((resolve) => {
    watcher.on("change", () => {
      seen += 1;
      if (seen === changes) resolve();
    });
  });
  const child = spawn(process.execPath, [main, "serve", "--port", "0", "--data-dir", dataDir], {
    stdio: "pipe",
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  // On another system it may make fewer; then it is killed when it is ready.
  await Promise.race([enough, once(child.stdout, "data")]);
  child.kill("SIGKILL");
  await once(child, "close");
  watcher.close();
  expect(readdirSync(dataDir)).not.toEqual([]);
}
