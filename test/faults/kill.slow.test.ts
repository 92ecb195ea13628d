import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, watch } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { main } from "../support/program.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type KmsServer, startKmsServer } from "./kms-server.ts";
import { judgeLives } from "./life-judge.ts";
import { startLoad } from "./life-load.ts";
import { createLives, type Lives } from "./life-model.ts";
import { createRandom, type Random } from "./mutations.ts";

/** Number of kills; QSP_TEST_KILLS=100 for a long run. */
const kills = Number(process.env.QSP_TEST_KILLS ?? 3);
const fewKills = Math.ceil(kills / 2);
const seed = Number(process.env.QSP_TEST_SEED ?? 20261122);
/** Timeout in milliseconds of a test with this many kills. */
const timeoutOf = (times: number): number => 180_000 + times * 45_000;

describe(`the program, killed with -9 at random moments in the lives of its keys (seed ${seed})`, () => {
  it(`keeps what it acknowledged, and destroys due keys exactly once, over ${kills} kills, on SQLite`, {
    timeout: timeoutOf(kills),
  }, async () => {
    expect(await killUnderLoad(kills, [])).toEqual({ contradictions: [], missing: [] });
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

describePostgres(
  `the program, killed with -9 at random moments in the lives of its keys (seed ${seed})`,
  () => {
    it(`keeps what it acknowledged, and destroys due keys exactly once, over ${fewKills} kills, on PostgreSQL`, {
      timeout: timeoutOf(fewKills),
    }, async () => {
      const databaseUrl = await freshDatabaseUrl();
      const outcome = await killUnderLoad(fewKills, ["--database-url", databaseUrl]);
      expect(outcome).toEqual({ contradictions: [], missing: [] });
    });
  },
);

/** Operations that must have been acknowledged for the test to prove anything. */
const operations = [
  ...["CREATE", "IMPORT", "SIGN", "SIGN_REFUSED", "BATCH_SIGN", "VERIFY", "ROTATE", "DISABLE", "ENABLE"],
  ...[
    "SCHEDULE_DESTROY",
    "RESTORE",
    "DESTROY",
    "DESTROY_WHEN_DUE",
    "GRANT",
    "REVOKE",
    "RACE",
    "RACE_REFUSED",
  ],
];

/** Returns the contradictions after the first kill that caused any, and the operations that never happened. */
async function killUnderLoad(times: number, args: readonly string[]) {
  const dataDir = makeTemporaryDirectory();
  const random = createRandom(seed);
  const lives = createLives();
  let contradictions: string[] = [];
  let server = await startKmsServer({ dataDir, args });
  for (let kill = 1; kill <= times && contradictions.length === 0; kill += 1) {
    contradictions = await useUntilKilled(server, lives, random);
    server = await startKmsServer({ dataDir, args });
    contradictions.push(...(await judgeLives(lives, server.kms)));
    if (contradictions.length > 0) contradictions.unshift(`after kill ${kill}:`);
  }
  await server.stop("SIGKILL");
  return { contradictions, missing: operations.filter((operation) => !lives.happened.has(operation)) };
}

/** Returns the contradictions before the kill. */
async function useUntilKilled(server: KmsServer, lives: Lives, random: Random): Promise<string[]> {
  const load = startLoad({ lives, server, random });
  await load.answers(50 + random.below(350));
  // At any moment, not only right after an answer, which always follows a commit.
  await setTimeout(random.below(20));
  const killedMs = performance.now();
  const exit = server.stop("SIGKILL");
  await load.stop();
  const { stderr } = await exit;
  const early = lives.failures.splice(0).filter(({ endedMs }) => endedMs < killedMs);
  return [
    ...early.map(
      ({ operation, code, reason }) => `${operation} failed with ${code} ${reason} before the kill`,
    ),
    ...stderr.split("\n").filter((line) => line.includes('"level":50')),
  ];
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
