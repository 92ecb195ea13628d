/** Kills of the program while callers lead keys through their lives: names, states, schedules, grants and imports. */
import { setImmediate } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type KmsServer, startKmsServer } from "./kms-server.ts";
import { judgeLives } from "./life-judge.ts";
import { liveUntilKilled } from "./life-load.ts";
import { createLives, type Lives } from "./life-model.ts";
import { createRandom, type Random } from "./mutations.ts";

/** Times that the program is killed; QSP_TEST_KILLS has another number. */
const kills = Number(process.env.QSP_TEST_KILLS ?? (process.env.QSP_TEST_LONG === "1" ? 100 : 10));
const fewKills = Math.ceil(kills / 2);
const seed = Number(process.env.QSP_TEST_SEED ?? 20261123);
const timeoutOf = (times: number): number => 180_000 + times * 45_000;

/** What must have been acknowledged, to prove anything. */
const operations = [
  ...["CREATE", "IMPORT", "SIGN", "SIGN_REFUSED", "ROTATE", "DISABLE", "ENABLE"],
  ...["SCHEDULE_DESTROY", "RESTORE", "DESTROY", "GRANT", "REVOKE", "RACE", "RACE_REFUSED"],
];

describe(`the program, killed with -9 while keys live their lives (seed ${seed})`, () => {
  it(`loses nothing that it acknowledged, and destroys what is due once, over ${kills} kills on SQLite`, {
    timeout: timeoutOf(kills),
  }, async () => {
    expect(await killAgainAndAgain(kills, [])).toEqual({ contradictions: [], missing: [] });
  });
});

describePostgres(`the program, killed with -9 while keys live their lives (seed ${seed})`, () => {
  it(`loses nothing that it acknowledged, and destroys what is due once, over ${fewKills} kills on PostgreSQL`, {
    timeout: timeoutOf(fewKills),
  }, async () => {
    const args = ["--database-url", await freshDatabaseUrl()];
    expect(await killAgainAndAgain(fewKills, args)).toEqual({ contradictions: [], missing: [] });
  });
});

/** Tells what was wrong after the first kill after which something was, and which operations nobody performed. */
async function killAgainAndAgain(times: number, args: readonly string[]) {
  const dataDir = makeTemporaryDirectory();
  const provider = await createCryptoProvider("openssl");
  onTestFinished(() => provider.close());
  const random = createRandom(seed);
  const lives = createLives();
  let contradictions: string[] = [];
  let server = await startKmsServer({ dataDir, args });
  for (let round = 1; round <= times && contradictions.length === 0; round += 1) {
    contradictions = await useUntilKilled({ server, lives, random, provider, round });
    server = await startKmsServer({ dataDir, args });
    contradictions.push(...(await judgeLives(lives, server.kms)));
    if (contradictions.length > 0) contradictions.unshift(`after kill ${round}:`);
  }
  await server.stop("SIGKILL");
  return { contradictions, missing: operations.filter((operation) => !lives.happened.has(operation)) };
}

interface Round {
  readonly server: KmsServer;
  readonly lives: Lives;
  readonly random: Random;
  readonly provider: CryptoProvider;
  readonly round: number;
}

/** Kills the program at a random moment under load. @returns what went wrong before it was killed */
async function useUntilKilled(round: Round): Promise<string[]> {
  const { server, lives, random } = round;
  const calls = 50 + random.below(250);
  const turns = random.below(300);
  let killedMs = Number.POSITIVE_INFINITY;
  const kill = async (): Promise<void> => {
    // Not the moment of an answer, which is that after a commit, but any.
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
