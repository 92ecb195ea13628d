import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { describe, type ExpectStatic, expect, it, onTestFinished, type TestContext, vi } from "vitest";
import { callRest, present, restRefusal } from "../services/answers.ts";
import type { AtEnd } from "../support/at-end.ts";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { describeRefusal, failureOf, refusal } from "../support/refusal.ts";
import { runToEnd } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type KmsClient, type KmsServer, startKmsServer } from "./kms-server.ts";
import { judgeLives } from "./life-judge.ts";
import { createKey, startLoad } from "./life-load.ts";
import { createLives, type Lives, listKinds } from "./life-model.ts";
import { createRandom } from "./mutations.ts";

const timeout = 300_000;
/** In the URL of every store here; PostgreSQL itself accepts any password. */
const password = "correct-horse-battery-staple";
const unavailable = { code: "Unavailable", reason: "STORE_UNAVAILABLE" };
/** Key of the advisory write lock in src/database/postgres.ts. */
const writeLock = 5_202_611;
const data = Buffer.from("message");

/** A store in PostgreSQL, a program that uses it, and what its callers know. */
interface Replica {
  readonly server: KmsServer;
  readonly lives: Lives;
}

describePostgres("a server whose PostgreSQL stops under load and comes back", () => {
  it.each(["fast", "immediate"] as const)(
    "answers UNAVAILABLE meanwhile and loses nothing, without a restart (stop %s)",
    { timeout },
    async (mode) => {
      const postgres = await startPostgres();
      onTestFinished(() => postgres.close());
      const replica = await startReplica(await postgres.createDatabase(), onTestFinished);
      const { failures } = replica.lives;
      const load = startLoadOn(replica);
      await load.answers(100);
      await postgres.stop(mode);
      await vi.waitUntil(() => failures.length >= 100, timeout);
      expect(await replica.server.kms.getHealth({})).toMatchObject({ serviceStatus: "DOWN" });
      await postgres.start();
      const readyMs = performance.now();
      await load.answers(200);
      await load.stop();
      expect(listKinds(replica.lives)).toEqual([unavailable]);
      expect(failures.filter(({ startedMs }) => startedMs > readyMs)).toEqual([]);
      await expectKept(replica, expect);
    },
  );
});

describePostgres("a server whose PostgreSQL is down", () => {
  it("answers every call with UNAVAILABLE until PostgreSQL is back", { timeout }, async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.close());
    const databaseUrl = await postgres.createDatabase();
    const { server } = await startReplica(databaseUrl, onTestFinished);
    const keyId = present((await server.kms.createKey({})).result).keyId;
    const watched = failureOf(watch(server.kms));
    await postgres.stop();

    const calls = Object.entries(callsOf(server.kms, keyId));
    const outcomes = await Promise.all(calls.map(async ([rpc, call]) => [rpc, await refusal(call)]));
    expect(outcomes).toEqual(calls.map(([rpc]) => [rpc, unavailable]));
    expect(describeRefusal(await watched)).toEqual(unavailable);
    expect(await server.kms.getHealth({})).toMatchObject({ serviceStatus: "DOWN" });
    const overRest = restRefusal(await callRest(server.url, "POST /api/kms/create-key", {}));
    expect(overRest).toMatchObject({ status: 503, code: "UNAVAILABLE", reason: "STORE_UNAVAILABLE" });
    await expect
      .poll(() => readReadiness(server))
      .toBe("the store cannot be written: it cannot be reached\n");

    await postgres.start();
    await expect.poll(() => readReadiness(server)).toBe("ready\n");
    expect(await server.kms.sign({ keyId, data })).toMatchObject({ status: "success" });
    expect(await server.kms.getHealth({})).toMatchObject({ serviceStatus: "UP" });
  });

  it("refuses to start with one line that omits the password in the URL", { timeout }, async () => {
    const postgres = await startPostgres({ durable: false });
    onTestFinished(() => postgres.close());
    const databaseUrl = withPassword(await postgres.createDatabase());
    await postgres.stop();
    const dataDir = makeTemporaryDirectory();
    const flags = ["serve", "--port", "0", "--data-dir", dataDir, "--database-url", databaseUrl];
    const { code, stdout, stderr } = await runToEnd(flags);
    expect({ code, stdout, stderr }).toEqual({
      // A service manager restarts the program after this exit code, but not after code 2.
      code: 4,
      stdout: "",
      stderr: expect.stringMatching(/^qsp: .*\n$/),
    });
    expect(stderr).not.toContain(password);
  });
});

describePostgres("a server that shares PostgreSQL with other servers", () => {
  describe.concurrent("and their database", { timeout }, () => {
    /** A replica, and an operator's session in its database. */
    const startShared = async ({ onTestFinished: atEnd }: TestContext) => {
      const databaseUrl = await freshDatabaseUrl();
      const replica = await startReplica(databaseUrl, atEnd);
      return { databaseUrl, replica, operator: await connect(databaseUrl, atEnd), ...replica };
    };

    it("answers correctly or with UNAVAILABLE while its sessions are terminated under load, and recovers", async (test) => {
      const { replica, operator, lives } = await startShared(test);
      const load = startLoadOn(replica);
      await load.answers(50);
      for (let times = 0; times < 20; times += 1) {
        await operator.query(`select pg_terminate_backend(pid) from (${sessions}) as theirs`);
        await load.answers(1 + (times % 7));
      }
      // Waits for the sessions to end, although the program may notice a little later.
      await operator.query(`select pg_terminate_backend(pid, 60000) from (${sessions}) as theirs`);
      await load.answers(1);
      const lastMs = performance.now();
      await load.answers(200);
      await load.stop();
      test.expect(listKinds(lives)).toEqual([unavailable]);
      const late = lives.failures.filter(({ startedMs }) => startedMs > lastMs);
      test.expect(late.length).toBeLessThanOrEqual(1);
      await expectKept(replica, test.expect);
    });

    it("writes again after the database was read-only, without a restart", async (test) => {
      const { replica, operator, databaseUrl, lives, server } = await startShared(test);
      const database = new URL(databaseUrl).pathname.slice(1);
      test.expect(await createKey({ lives, kms: server.kms }, "before-it")).toBe(true);
      await operator.query(`alter database ${database} set default_transaction_read_only = on`);
      await operator.query(`select pg_terminate_backend(pid) from (${sessions}) as theirs`);
      // From here on, the program has a session that stays read-only.
      test.expect(await refusal(server.kms.createKey({}))).toEqual(unavailable);
      const readiness = () => readReadiness(server);
      await test.expect.poll(readiness).toBe("the store cannot be written: it is read-only\n");
      test.expect(await server.kms.getHealth({})).toMatchObject({ serviceStatus: "DOWN" });
      test.expect(await server.kms.listKeys({})).toMatchObject({ totalSize: 1 });
      await operator.query("set default_transaction_read_only = off");
      await operator.query(`alter database ${database} reset default_transaction_read_only`);
      await test.expect.poll(readiness).toBe("ready\n");
      test.expect(await createKey({ lives, kms: server.kms }, "after-it")).toBe(true);
      await expectKept(replica, test.expect);
    });

    it("waits while another program holds the write lock, and then succeeds", async (test) => {
      const { replica, operator, databaseUrl, lives, server } = await startShared(test);
      const unlock = await holdWriteLock(databaseUrl, test.onTestFinished);
      let answered = 0;
      const orders = Array.from({ length: 32 }, async (_, i) => {
        const isCreated = await createKey({ lives, kms: server.kms }, `order-${i}`);
        answered += 1;
        return isCreated;
      });
      const countWaiting = async () => (await operator.query(waitingForWriteLock)).rowCount;
      await test.expect.poll(countWaiting).toBeGreaterThan(0);
      test.expect(answered).toBe(0);
      await unlock();
      test.expect(await Promise.all(orders)).toEqual(Array(32).fill(true));
      await expectKept(replica, test.expect);
    });

    it("answers UNAVAILABLE while another program holds the write lock, and recovers when it is free", async (test) => {
      const { replica, databaseUrl, lives } = await startShared(test);
      const load = startLoadOn(replica);
      await load.answers(50);
      const unlock = await holdWriteLock(databaseUrl, test.onTestFinished);
      await vi.waitUntil(() => lives.failures.length > 0, timeout);
      await unlock();
      await load.answers(100);
      await load.stop();
      test.expect(listKinds(lives)).toEqual([unavailable]);
      await expectKept(replica, test.expect);
    });

    it("continues when another replica hangs in the middle of its transaction", async (test) => {
      const { replica, operator, databaseUrl, lives, server } = await startShared(test);
      const lively = await startReplica(databaseUrl, test.onTestFinished);
      const load = startLoadOn(replica);
      await load.answers(50);
      await stopInTransaction(server, operator);

      // The other replica hangs until this call is answered, so only a database timeout can end its transaction.
      test.expect(await createKey({ lives, kms: lively.server.kms }, "from-the-other")).toBe(true);

      server.process.kill("SIGCONT");
      await load.answers(100);
      await load.stop();
      test.expect([unavailable]).toEqual(test.expect.arrayContaining(listKinds(lives)));
      await expectKept(replica, test.expect);
    });
  });
});

/** Returns the server's answer to a readiness probe. */
async function readReadiness({ url }: KmsServer): Promise<string> {
  return (await fetch(`${url}/readyz`)).text();
}

/** All replicas of a store share this. */
const env = { QSP_MASTER_KEY: "5a".repeat(32) };

async function startReplica(databaseUrl: string, atEnd: AtEnd): Promise<Replica> {
  const dataDir = makeTemporaryDirectory(atEnd);
  const args = ["--database-url", withPassword(databaseUrl)];
  const server = await startKmsServer({ dataDir, args, env }, atEnd);
  return { server, lives: createLives() };
}

function withPassword(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.password = password;
  return url.href;
}

function startLoadOn({ server, lives }: Replica) {
  return startLoad({ lives, server, random: createRandom(20261124) });
}

/** Checks that the store has everything acknowledged, and that the program's log contains none of it. */
async function expectKept({ server, lives }: Replica, expect: ExpectStatic): Promise<void> {
  expect(await judgeLives(lives, server.kms)).toEqual([]);
  const { stderr } = await server.stop();
  expect(stderr).not.toContain(password);
  // Key names reach the database like all other values: as statement parameters.
  expect([...lives.lines.keys()].filter((name) => stderr.includes(name))).toEqual([]);
}

/** The program's sessions in this database. */
const sessions = `select pid, state from pg_stat_activity where datname = current_database()
  and application_name = 'quantum-safe-playground'`;

/** Counts sessions that wait for the write lock in this database. */
const waitingForWriteLock = `select pid from pg_locks where locktype = 'advisory' and not granted
  and database = (select oid from pg_database where datname = current_database())`;

async function connect(databaseUrl: string, atEnd: AtEnd): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  atEnd(() => client.end());
  return client;
}

/** Acquires the write lock, and returns a function that releases it. */
async function holdWriteLock(databaseUrl: string, atEnd: AtEnd): Promise<() => Promise<unknown>> {
  const client = await connect(databaseUrl, atEnd);
  await client.query(`begin; select pg_advisory_xact_lock(${writeLock})`);
  return () => client.query("rollback");
}

/** Suspends a program under load repeatedly, until it hangs between two statements of a transaction. */
async function stopInTransaction({ process }: KmsServer, operator: pg.Client): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    process.kill("SIGSTOP");
    const states = await settledStates(operator);
    if (states.includes("idle in transaction")) return;
    process.kill("SIGCONT");
    await setTimeout(attempt % 10);
  }
  throw new Error("the program could not be stopped in the middle of a transaction");
}

/** Returns the states of the program's sessions once the last of its statements has ended. */
async function settledStates(operator: pg.Client): Promise<string[]> {
  for (;;) {
    const { rows } = await operator.query<{ state: string }>(sessions);
    const states = rows.map(({ state }) => state);
    if (!states.includes("active")) return states;
  }
}

async function watch(kms: KmsClient): Promise<void> {
  for await (const _ of kms.watchAuditLog({ afterSequence: 0 }));
}

function callsOf(kms: KmsClient, keyId: string): Record<string, Promise<unknown>> {
  return {
    GetKey: kms.getKey({ keyId }),
    ListKeys: kms.listKeys({}),
    GetAuditLog: kms.getAuditLog({}),
    VerifyAuditLog: kms.verifyAuditLog({}),
    CreateKey: kms.createKey({}),
    "CreateKey, repeatable": kms.createKey({}, { headers: { "idempotency-key": "1" } }),
    RotateKey: kms.rotateKey({ keyId }),
    DestroyKey: kms.destroyKey({ keyId }),
    Sign: kms.sign({ keyId, data }),
    BatchSign: kms.batchSign({ keyId, data: [data] }),
    Verify: kms.verify({ keyId, data, signature: Buffer.alloc(3309) }),
  };
}
