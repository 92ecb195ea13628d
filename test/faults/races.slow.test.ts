import { setTimeout } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { describe, expect, it, vi } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { present } from "../services/answers.ts";
import { readAudit } from "../services/kms/read-audit.ts";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { describeRefusal, refusal } from "../support/refusal.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { findLateUses } from "./judge.ts";
import { type KmsClient, startKmsServer } from "./kms-server.ts";
import { createRandom, type Random } from "./mutations.ts";

/** Number of contested keys in each test; QSP_TEST_RACES=200 for a long run. */
const rounds = Number(process.env.QSP_TEST_RACES ?? 2);
const seed = Number(process.env.QSP_TEST_SEED ?? 20261125);
/** Number of repeated calls of each kind in each test. */
const repeats = Math.ceil(rounds / 3);
const timeout = 180_000 + rounds * 3000;
const callers = 64;
const data = Buffer.from("message");
/** On a busy machine, 64 concurrent signatures may wait for more than a second. Refusals are not the subject here. */
const longQueue = { QSP_MAX_QUEUE_MS: "60000" };

describe("one program on SQLite", () => {
  defineRaces(async () => {
    const { kms } = await startKmsServer({ dataDir: makeTemporaryDirectory(), env: longQueue });
    return [kms];
  });
});

describe("two programs on one SQLite data directory", () => {
  defineRaces(async () => {
    const dataDir = makeTemporaryDirectory();
    const [one, other] = [
      await startKmsServer({ dataDir, env: longQueue }),
      await startKmsServer({ dataDir, env: longQueue }),
    ];
    return [one.kms, other.kms];
  });
});

describePostgres("two programs on one PostgreSQL", () => {
  defineRaces(async () => {
    const args = ["--database-url", await freshDatabaseUrl()];
    const env = { QSP_MASTER_KEY: "5a".repeat(32), ...longQueue };
    const start = () => startKmsServer({ dataDir: makeTemporaryDirectory(), args, env });
    const [one, other] = [await start(), await start()];
    return [one.kms, other.kms];
  });
});

function defineRaces(start: () => Promise<KmsClient[]>): void {
  it(`put ${callers} callers who sign with, rotate and destroy one key at once into one order (${rounds} keys)`, {
    timeout,
  }, async () => {
    expect(await race(await start())).toEqual(fairRaces);
  });

  it(`return one answer to ${callers} callers who repeat a creation, rotation or destruction (${repeats} times)`, {
    timeout,
  }, async () => {
    expect(await repeatAtOnce(await start())).toEqual([]);
  });

  it("reject a whole batch whose key is rotated or destroyed while it is signed", {
    timeout,
  }, async () => {
    const clients = await start();
    const [kms, other] = [clients[0], clients.at(-1)] as [KmsClient, KmsClient];
    for (const retire of [other.rotateKey, other.destroyKey]) {
      // A slow algorithm: signing the batch takes longer than the key lives.
      const { keyId } = present((await kms.createKey({ algorithm: "SLH-DSA-SHA2-128f" })).result);
      const batch = refusal(kms.batchSign({ keyId, data: Array(150).fill(data) }));
      const [refused] = await Promise.all([batch, retire({ keyId })]);
      expect(refused).toEqual({ code: "FailedPrecondition", reason: "KEY_STATE_INVALID" });
      expect((await readAudit(kms, keyId)).filter(({ outcome }) => outcome === "OK")).toHaveLength(2);
    }
  });
}

/** Interval in which the repeats arrive, in milliseconds: some before the first call is done, some after. */
const repeatWithinMs = 20;

/** Repeats one call from many callers, and returns their answers unless all are equal. */
async function repeatAtOnce(clients: readonly KmsClient[]): Promise<string[]> {
  const random = createRandom(seed);
  const [kms] = clients as [KmsClient];
  const differing: string[] = [];
  for (let round = 0; round < repeats; round += 1) {
    const { keyId } = present((await kms.createKey({ algorithm: "ML-DSA-44" })).result);
    const calls: ((kms: KmsClient, options: { headers: Record<string, string> }) => Promise<KeyAnswer>)[] = [
      (client, options) => client.createKey({ alias: keyId, algorithm: "ML-DSA-44" }, options),
      (client, options) => client.rotateKey({ keyId }, options),
      (client, options) => client.destroyKey({ keyId }, options),
    ];
    for (const [i, call] of calls.entries()) {
      const options = { headers: { "idempotency-key": `${keyId} ${i}` } };
      const answers = Array.from({ length: callers }, async (_, caller) => {
        await setTimeout(random.below(repeatWithinMs));
        const answer = call(clients[caller % clients.length] as KmsClient, options);
        return answer.then(describeAnswer, (error) => describeRefusal(ConnectError.from(error)).reason);
      });
      const kinds = new Set(await Promise.all(answers));
      if (kinds.size !== 1) differing.push([...kinds].join(" or "));
    }
  }
  return differing;
}

/** Every field that names a key. */
interface KeyAnswer {
  readonly result?: KeyRecord | undefined;
  readonly newKey?: KeyRecord | undefined;
  readonly keyId?: string;
}

function describeAnswer(answer: KeyAnswer): string {
  return `key ${(answer.result ?? answer.newKey ?? answer).keyId}`;
}

/** What races must result in: no rule broken, although there was something to break. */
const fairRaces = { faults: [], wereClose: true, wereWonBy: ["DESTROY", "ROTATE"] };

/** Runs races for one key after another, and summarizes the results. */
async function race(clients: readonly KmsClient[]): Promise<unknown> {
  const random = createRandom(seed);
  const faults: string[] = [];
  const wereWonBy = new Set<string>();
  let close = 0;
  const [kms] = clients as [KmsClient];
  for (let round = 0; round < rounds; round += 1) {
    const { keyId } = present((await kms.createKey({ algorithm: "ML-DSA-44" })).result);
    const changes = changesInTurn[round % changesInTurn.length] as Change[];
    const calls = await runOut(clients, keyId, changes, random);
    const entries = await readAudit(kms, keyId);
    faults.push(...findFaults(calls, entries), ...findLateUses(entries));
    const signing = calls.filter(({ signatures }) => signatures > 0);
    if (signing.some(isOk) && signing.some((call) => !isOk(call))) close += 1;
    for (const winner of entries.filter((entry) => entry.outcome === "OK" && isChange(entry.operation)))
      wereWonBy.add(winner.operation);
  }
  const { valid } = await kms.verifyAuditLog({});
  if (!valid) faults.push("the audit log is not valid");
  return { faults, wereClose: close === rounds, wereWonBy: [...wereWonBy].sort() };
}

/** How and when a call was answered. */
interface Call {
  readonly operation: "SIGN" | Change;
  /** Number of requested signatures. */
  readonly signatures: number;
  readonly startedMs: number;
  readonly answeredMs: number;
  /** Reason of a refusal; undefined on success. */
  readonly reason: string | undefined;
}

const isOk = ({ reason }: Call): boolean => reason === undefined;
const isChange = (operation: string): operation is Change =>
  operation === "ROTATE" || operation === "DESTROY";

/** Number of callers who try to rotate or destroy; the others sign. */
const changers = 8;

type Change = "ROTATE" | "DESTROY";
/** What the changers of one key do. By turns: chance can leave out a change in all rounds. */
const changesInTurn: Change[][] = [["ROTATE"], ["DESTROY"], ["ROTATE", "DESTROY"]];

/** Lets callers race until every signer was refused twice. */
async function runOut(
  clients: readonly KmsClient[],
  keyId: string,
  changes: readonly Change[],
  random: Random,
): Promise<Call[]> {
  const calls: Call[] = [];
  const make = async (call: Pick<Call, "operation" | "signatures">, answer: Promise<unknown>) => {
    const startedMs = performance.now();
    const reason = await answer.then(
      () => undefined,
      (error: unknown) => describeRefusal(ConnectError.from(error)).reason ?? String(error),
    );
    calls.push({ ...call, startedMs, answeredMs: performance.now(), reason });
    return reason;
  };
  const sign = (kms: KmsClient) =>
    random.below(4) === 0
      ? make({ operation: "SIGN", signatures: 3 }, kms.batchSign({ keyId, data: [data, data, data] }))
      : make({ operation: "SIGN", signatures: 1 }, kms.sign({ keyId, data }));
  const change = (kms: KmsClient, operation: Change) =>
    make(
      { operation, signatures: 0 },
      operation === "ROTATE" ? kms.rotateKey({ keyId }) : kms.destroyKey({ keyId }),
    );

  const signUntilRefused = async (kms: KmsClient): Promise<void> => {
    while ((await sign(kms)) === undefined);
    // Certainly after the change was answered, perhaps by the other program.
    await sign(kms);
  };
  const changeSoon = async (kms: KmsClient): Promise<void> => {
    const signatures = 20 + random.below(40);
    await vi.waitUntil(() => calls.length >= signatures, { interval: 1, timeout });
    await change(kms, random.pick(changes));
  };
  const race = Array.from({ length: callers }, (_, i) => {
    const kms = clients[i % clients.length] as KmsClient;
    return i < changers ? changeSoon(kms) : signUntilRefused(kms);
  });
  await Promise.all(race);
  return calls;
}

/** Checks the answers of one race against each other, and against the key's audit log. */
function findFaults(calls: readonly Call[], entries: readonly AuditEntry[]): string[] {
  const changes = calls.filter(({ operation }) => isChange(operation));
  const succeeded = changes.filter(isOk).map(({ operation }) => operation);
  // A rotated key can still be destroyed, but nothing happens to it twice or after its destruction.
  const possible = changes.some(({ operation }) => operation === "DESTROY")
    ? ["DESTROY", "DESTROY,ROTATE"]
    : ["ROTATE"];
  const changedMs = Math.min(...changes.filter(isOk).map(({ answeredMs }) => answeredMs));
  const late = calls.filter((call) => call.operation === "SIGN" && isOk(call) && call.startedMs > changedMs);
  const unexpected = calls.filter(({ reason }) => reason !== undefined && reason !== "KEY_STATE_INVALID");
  const answered = countCalls(calls);
  const logged = countEntries(entries);
  return [
    ...unexpected.map(({ operation, reason }) => `${operation} was answered ${reason}`),
    ...late.map(({ startedMs }) => `a key signed in a call made ${startedMs - changedMs} ms after its end`),
    ...(possible.includes(succeeded.sort().join()) ? [] : [`these changes succeeded: ${succeeded}`]),
    ...findUnseen(calls, entries),
    ...(answered === logged ? [] : [`callers saw ${answered}, but the log says ${logged}`]),
  ];
}

/** Every successful call has one entry, except that a batch has one for each signature. */
function countCalls(calls: readonly Call[]): string {
  return count(
    calls.filter(isOk).flatMap(({ operation, signatures }) => Array(Math.max(1, signatures)).fill(operation)),
  );
}

function countEntries(entries: readonly AuditEntry[]): string {
  const ofCalls = entries.filter(({ operation, outcome }) => operation !== "CREATE" && outcome === "OK");
  return count(ofCalls.map(({ operation }) => operation));
}

/** Finds logged refusals that no caller received. Equal refusals share an entry, and entries may be omitted. */
function findUnseen(calls: readonly Call[], entries: readonly AuditEntry[]): string[] {
  const refused = new Set(calls.filter((call) => !isOk(call)).map(({ operation }) => String(operation)));
  return entries.flatMap(({ operation, outcome }) =>
    outcome === "REFUSED" && !refused.has(operation) ? [`the log has a refusal of ${operation}`] : [],
  );
}

function count(kinds: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts]
    .map(([kind, times]) => `${kind}: ${times}`)
    .sort()
    .join(", ");
}
