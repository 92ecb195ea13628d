/** Kills the program while callers take keys through their life cycle: names, states, schedules, grants and imports. */
import { setImmediate } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { killAgainAndAgain, timeoutOf } from "./kms-server.ts";
import { judgeLives } from "./life-judge.ts";
import { type LifeLoad, liveUntilKilled } from "./life-load.ts";
import { createLives } from "./life-model.ts";
import { createRandom } from "./mutations.ts";

/** Number of kills; QSP_TEST_KILLS changes it. */
const kills = Number(process.env.QSP_TEST_KILLS ?? (process.env.QSP_TEST_LONG === "1" ? 100 : 3));
const fewKills = Math.ceil(kills / 2);
const seed = Number(process.env.QSP_TEST_SEED ?? 20261123);

/** Operations that must have been acknowledged for the test to prove anything. */
const operations = [
  ...["CREATE", "IMPORT", "SIGN", "SIGN_REFUSED", "ROTATE", "DISABLE", "ENABLE"],
  ...["SCHEDULE_DESTROY", "RESTORE", "DESTROY", "GRANT", "REVOKE", "RACE", "RACE_REFUSED"],
];

describe(`the program, killed with -9 at any stage of a key's life cycle (seed ${seed})`, () => {
  it(`keeps acknowledged changes, and destroys due keys exactly once, over ${kills} kills on SQLite`, {
    timeout: timeoutOf(kills),
  }, async () => {
    expect(await killLives(kills, [])).toEqual({ contradictions: [], missing: [] });
  });
});

describePostgres(`the program, killed with -9 at any stage of a key's life cycle (seed ${seed})`, () => {
  it(`keeps acknowledged changes, and destroys due keys exactly once, over ${fewKills} kills on PostgreSQL`, {
    timeout: timeoutOf(fewKills),
  }, async () => {
    const args = ["--database-url", await freshDatabaseUrl()];
    expect(await killLives(fewKills, args)).toEqual({ contradictions: [], missing: [] });
  });
});

/** Returns the contradictions after the first kill that caused any, and the operations that never happened. */
async function killLives(times: number, args: readonly string[]) {
  const provider = await createCryptoProvider("openssl");
  onTestFinished(() => provider.close());
  const random = createRandom(seed);
  const lives = createLives();
  const contradictions = await killAgainAndAgain(times, args, {
    use: (server, round) => useUntilKilled({ server, lives, random, provider, round }),
    judge: (kms) => judgeLives(lives, kms),
  });
  return { contradictions, missing: operations.filter((operation) => !lives.happened.has(operation)) };
}

/** Kills the program at a random moment under load, and returns the contradictions before the kill. */
async function useUntilKilled(round: LifeLoad): Promise<string[]> {
  const { server, lives, random } = round;
  const calls = 50 + random.below(250);
  const turns = random.below(300);
  let killedMs = Number.POSITIVE_INFINITY;
  const kill = async (): Promise<void> => {
    // At any moment, not only right after an answer, which always follows a commit.
    for (let turn = 0; turn < turns; turn += 1) await setImmediate();
    killedMs = performance.now();
    await server.stop("SIGKILL");
  };
  let answered = 0;
  let killing: Promise<void> | undefined;
  await liveUntilKilled(round, () => {
    answered += 1;
    if (answered === calls) killing = kill();
  });
  await killing;
  const { stderr } = await server.stop("SIGKILL");
  const early = lives.failures.splice(0).filter(({ atMs }) => atMs < killedMs);
  return [
    ...early.map(({ sentence }) => `${sentence} before the kill`),
    ...stderr.split("\n").filter((line) => line.includes('"level":50')),
  ];
}
