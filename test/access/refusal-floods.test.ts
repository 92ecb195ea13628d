/** Rejected calls add little to the store, whatever a user calls, and however often. */
import { expect, it, onTestFinished } from "vitest";
import { refusalBudget } from "../../src/audit/refusal-budget.ts";
import { present } from "../services/answers.ts";
import { bytesOf } from "../support/bytes.ts";
import { loadFromExtensions } from "../support/extension-tests.ts";
import { outcomeOf, refusal } from "../support/refusal.ts";
import { streamOf } from "../support/streams.ts";
import {
  type AccessServer,
  describeAccess,
  makePeople,
  type Person,
  startAccessServer,
} from "./access-server.ts";

const data = bytesOf("hello");

/**
 * A user's call that is rejected.
 *
 * @param n differs from call to call
 * @param own the user's own keys
 */
type RefusedCall = (server: AccessServer, user: Person, n: number, own: OwnKeys) => Promise<unknown>;

interface OwnKeys {
  readonly signing: string;
  readonly kem: string;
}

const headerOf = (keyId: string) => ({
  part: { case: "header" as const, value: { keyId, context: new Uint8Array() } },
});

const post: (path: string, body: (n: number, own: OwnKeys) => object) => RefusedCall =
  (path, body) => async (server, user, n, own) => {
    const answer = await server.rest(`POST /api/kms/${path}`, body(n, own), authorizationOf(user));
    expect(answer.ok).toBe(false);
  };

const authorizationOf = ({ token }: Person) => ({ authorization: `Bearer ${token}` });

/** Calls that get an entry each because they differ: the handle changes each time. */
const differing: readonly RefusedCall[] = [
  (_server, { kms }, n) => refusal(kms.sign({ keyId: `key-${n}`, data })),
  (_server, { kms }, n) => refusal(kms.sign({ keyId: `name/${n}${"€".repeat(500)}`, data })),
  (_server, { kms }, n) => refusal(kms.signStream(streamOf(headerOf(`stream-${n}`)))),
  (_server, { kms }, n) => refusal(kms.revokeGrant({ grantId: `grant-${n}` })),
  (_server, { kms }, n) =>
    refusal(kms.importKey({ importToken: `import-${n}`, wrappedKey: data, algorithm: "ML-DSA-44" })),
  post("batch-sign", (n) => ({ keyId: `batch-${n}`, data: Array(100).fill("") })),
];

/** Calls about the same key, which count as equal refusals. */
const equal: readonly RefusedCall[] = [
  (_server, { kms }, _n, { signing }) =>
    refusal(kms.batchSign({ keyId: signing, data: Array(1000).fill(new Uint8Array()) })),
  (_server, { kms }, _n, { signing }) =>
    refusal(kms.signStream(streamOf(headerOf(signing), headerOf(signing)))),
  (_server, { kms }, n, { kem }) =>
    refusal(kms.decapsulate({ keyId: kem, ciphertext: new Uint8Array(1 + (n % 1000)) })),
  post("decapsulate", (_n, { kem }) => ({ keyId: kem, ciphertext: "AQ==" })),
];

const ofExtensions = await loadFromExtensions<{
  readonly silent: Readonly<Record<string, RefusedCall>>;
}>("refused-calls");

/** Calls that are rejected, or answered negatively, and have no entry at all. */
const silent: Readonly<Record<string, RefusedCall>> = {
  ...Object.assign({}, ...ofExtensions.map((module) => module.silent)),
  "StreamTelemetry of unknown devices": async (_server, { iot }, n) => {
    const reading = { deviceId: `device-${n}`, telemetry: data, signature: new Uint8Array(2420) };
    for await (const { reason } of iot.streamTelemetry(streamOf({ reading }))) expect(reason).not.toBe("");
  },
  "IssueChallenge for an unknown device": (_server, { iot }, n) =>
    refusal(iot.issueChallenge({ deviceId: `device-${n}` })),
  "a rejected call with an idempotency key": (_server, { kms }, n) =>
    refusal(
      kms.createKey({ algorithm: "ML-KEM-768", usage: "SIGN" }, { headers: { "idempotency-key": `${n}` } }),
    ),
  "a handshake with an unknown tunnel": (_server, { vpn }, n) =>
    refusal(vpn.handshake({ tunnelId: `tunnel-${n}`, ciphertext: data })),
};

async function makeKeys({ kms }: Person): Promise<OwnKeys> {
  const make = async (algorithm: string) => present((await kms.createKey({ algorithm })).result).keyId;
  return { signing: await make("ML-DSA-44"), kem: await make("ML-KEM-768") };
}

/** Makes calls, some at a time. */
async function flood(calls: readonly (() => Promise<unknown>)[]): Promise<void> {
  const waiting = calls.values();
  const work = async (): Promise<void> => {
    for (const call of waiting) await call();
  };
  await Promise.all(Array.from({ length: 32 }, work));
}

/** Row counts of all tables. */
async function countRows({ tamper }: AccessServer): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  await tamper(async (db) => {
    for (const { name } of await db.introspection.getTables()) {
      const { count } = await db
        .selectFrom(name as "audit_entries")
        .select((row) => row.fn.countAll<number>().as("count"))
        .executeTakeFirstOrThrow();
      counts[name] = Number(count);
    }
  });
  return counts;
}

/** Entries about refusals: operation and details. */
async function readRefusals({ tamper }: AccessServer, user: Person): Promise<string[]> {
  const lines: string[] = [];
  await tamper(async (db) => {
    const rows = await db
      .selectFrom("audit_entries")
      .selectAll()
      .where("user_name", "=", user.name)
      .where("outcome", "=", "REFUSED")
      .orderBy("sequence")
      .execute();
    for (const { operation, details, key_id } of rows) {
      expect(key_id.length).toBeLessThanOrEqual(100);
      lines.push(`${operation} ${details}`);
    }
  });
  return lines;
}

/** The audit log, its verifiable tree, and the checkpoints of all logs, which change over time. */
const logTables = /^audit_|^tlog_|_checkpoints$/;

function listGrown(before: Record<string, number>, after: Record<string, number>): string[] {
  return Object.keys(after).filter((name) => !logTables.test(name) && after[name] !== before[name]);
}

describeAccess("a user whose calls are rejected", (shared) => {
  const start = async (args: readonly string[] = []) => startAccessServer({ atEnd: onTestFinished, args });

  it("adds at most 1,000 entries an hour, whatever they call, and one with the number of the others", async () => {
    const server = await start();
    const [user, other] = await makePeople(server);
    const own = await makeKeys(user);
    const before = await countRows(server);
    const each = 200;
    const calls = Array.from({ length: each }, (_, n) =>
      differing.map((call) => () => call(server, user, n, own)),
    );
    await flood(calls.flat());
    expect(await readRefusals(server, user)).toHaveLength(refusalBudget.entries);
    expect(listGrown(before, await countRows(server))).toEqual([]);
    // Successful calls and other users still get entries.
    await user.kms.sign({ keyId: own.signing, data });
    await refusal(other.kms.sign({ keyId: own.signing, data }));
    const auditor = await server.makePerson("auditor");
    const { auditLog } = await auditor.kms.getAuditLog({ keyId: own.signing });
    expect(auditLog.map(({ operation, outcome }) => `${operation} ${outcome}`)).toEqual([
      "CREATE OK",
      "SIGN OK",
      "SIGN REFUSED",
    ]);
    expect(await auditor.kms.verifyAuditLog({})).toMatchObject({ valid: true });
    const text = await (await server.rest("GET /metrics", undefined, authorizationOf(auditor))).text();
    const unrecorded = differing.length * each - refusalBudget.entries;
    expect(text).toMatch(new RegExp(`^qsp_refusals_unrecorded_total ${unrecorded}$`, "m"));
    await server.close();
    expect((await readRefusals(server, user)).at(-1)).toBe(`REFUSALS unrecorded=${unrecorded}`);
  });

  it("adds two entries for equal refusals: the first, and one with the number of the others", async () => {
    const server = await start();
    const user = await server.makePerson();
    const own = await makeKeys(user);
    const before = await countRows(server);
    const calls = equal.map((call) => Array.from({ length: 20 }, (_, n) => () => call(server, user, n, own)));
    await flood(calls.flat());
    const first = ["DECAPSULATE reason=LENGTH_INVALID", "SIGN reason=FIELD_INVALID"];
    expect((await readRefusals(server, user)).sort()).toEqual(first);
    expect(listGrown(before, await countRows(server))).toEqual([]);
    await server.close();
    const repeated = (await readRefusals(server, user)).slice(first.length).sort();
    expect(repeated).toEqual(first.map((line) => `${line}, repeated=39`));
  });

  it.each(Object.entries(silent))("adds nothing: %s", async (_name, call) => {
    const server = await shared();
    const user = await server.makePerson();
    const own = await makeKeys(user);
    const before = await countRows(server);
    await flood(Array.from({ length: 20 }, (_, n) => () => call(server, user, n, own)));
    expect(listGrown(before, await countRows(server))).toEqual([]);
    expect(await readRefusals(server, user)).toEqual([]);
  });

  it("adds nothing for calls that the server rejects under load", async () => {
    const server = await start(["--max-queue-ms", "1", "--max-backlog-ms", "1"]);
    const user = await server.makePerson();
    const { keyId } = present((await user.kms.createKey({ algorithm: "SLH-DSA-SHA2-128s" })).result);
    const calls = Array.from({ length: 20 }, () => outcomeOf(user.kms.sign({ keyId, data })));
    expect(await Promise.all(calls)).toContain("SERVER_BUSY");
    expect(await readRefusals(server, user)).toEqual([]);
  });
});
