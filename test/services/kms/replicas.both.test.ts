/** Several servers on one database, whose callers and schedules race. */
import { describe, expect, it } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { bytesOf } from "../../support/bytes.ts";
import { describePostgres, freshDatabaseUrl } from "../../support/postgres.ts";
import { outcomesOf, refusal } from "../../support/refusal.ts";
import { stateRefuses } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { move, type State } from "./key-states.ts";
import {
  createKey,
  databaseAt,
  describeReplicas,
  type KmsClient,
  type KmsServer,
  readDeeds,
  sign,
  startKmsServer,
} from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const data = bytesOf("hello");

async function signForever(kms: KmsClient, keyId: string): Promise<never> {
  for (;;) await kms.sign({ keyId, data });
}

describeReplicas("replicas", (startTwo) => {
  describe.each(["rotate", "destroy"] as const)("that %s a key", (change) => {
    const retire = (kms: KmsClient, keyId: string) => kms[`${change}Key`]({ keyId });

    it("reject it everywhere for each of its uses", async () => {
      const [here, there] = await startTwo();
      const signing = await createKey(here.kms);
      const kem = await createKey(here.kms, { algorithm: "ML-KEM-512" });
      const signature = await sign(there.kms, { keyId: signing.keyId, data });
      const { ciphertext } = present((await there.kms.encapsulate({ keyId: kem.keyId })).result);
      await there.kms.decapsulate({ keyId: kem.keyId, ciphertext });
      for (const { keyId } of [signing, kem]) await retire(here.kms, keyId);
      const refused = [
        there.kms.sign({ keyId: signing.keyId, data }),
        there.kms.batchSign({ keyId: signing.keyId, data: [data] }),
        there.kms.encapsulate({ keyId: kem.keyId }),
        there.kms.rotateKey({ keyId: signing.keyId }),
      ];
      expect(await outcomesOf(refused)).toEqual({ answered: 0, refusals: Array(4).fill(stateRefuses) });
      const kept = [
        there.kms.verify({ keyId: signing.keyId, data, signature }),
        there.kms.decapsulate({ keyId: kem.keyId, ciphertext }),
      ];
      const answered = change === "rotate" ? 2 : 0;
      const refusals = Array(2 - answered).fill(stateRefuses);
      expect(await outcomesOf(kept)).toEqual({ answered, refusals });
    });

    it("sign until then, and not afterwards", async () => {
      const [here, there] = await startTwo();
      for (let round = 0; round < 3; round += 1) {
        const { keyId } = await createKey(here.kms);
        const clients = [...Array(6).fill(there.kms), here.kms, here.kms];
        const refusals = Promise.all(clients.map((kms) => refusal(signForever(kms, keyId))));
        await there.kms.sign({ keyId, data });
        await retire(here.kms, keyId);
        expect(await refusals).toEqual(Array(8).fill(stateRefuses));
        // Each server has one entry, and counts the others.
        const deeds = await readDeeds(here.kms, keyId);
        const retired = deeds.findIndex((deed) => deed.startsWith(`${change.toUpperCase()} OK`));
        expect(deeds.slice(retired + 1)).toEqual(Array(2).fill("SIGN REFUSED reason=KEY_STATE_INVALID"));
      }
    });
  });
});

describePostgres("two servers on a database with a different default isolation level", () => {
  it.each(["repeatable read", "serializable"])(
    "(%s) write one audit log, and find no damage",
    async (level) => {
      const option = `-c default_transaction_isolation=${level.replace(" ", "\\ ")}`;
      const database = databaseAt(`${await freshDatabaseUrl()}?options=${encodeURIComponent(option)}`);
      const [one, other] = [await startKmsServer({ database }), await startKmsServer({ database })];
      const { keyId } = await createKey(one.kms);
      const signTwenty = async ({ kms }: KmsServer) => {
        for (let i = 0; i < 20; i += 1) await kms.sign({ keyId, data });
      };
      await Promise.all([one, other, one, other, one, other].map(signTwenty));
      expect(await other.kms.verifyAuditLog({})).toMatchObject({ valid: true, entries: 121 });
    },
  );
});

const callers = 64;
const callsOfEach = 6;

/** What a caller may do next, chosen at random. */
const deeds: readonly ((kms: KmsServer["kms"], keyId: string) => Promise<unknown>)[] = [
  (kms, keyId) => kms.sign({ keyId, data }),
  (kms, keyId) => kms.sign({ keyId, data }),
  (kms, keyId) => kms.disableKey({ keyId }),
  (kms, keyId) => kms.enableKey({ keyId }),
  (kms, keyId) => kms.enableKey({ keyId }),
  (kms, keyId) => kms.rotateKey({ keyId }),
  (kms, keyId) => kms.destroyKey({ keyId, afterSeconds: 1 }),
  (kms, keyId) => kms.restoreKey({ keyId }),
];

/** Follows a key's states through its entries; returns the entries that its state did not allow. */
function findForbidden(entries: readonly AuditEntry[]): string[] {
  let state: State = "ACTIVE";
  let wasRotated = false;
  const forbidden: string[] = [];
  for (const { operation, outcome, sequence } of entries) {
    if (outcome !== "OK" || operation === "CREATE") continue;
    if (operation === "SIGN") {
      if (state !== "ACTIVE") forbidden.push(`${sequence} SIGN while ${state}`);
      continue;
    }
    const next = move(state, operation, wasRotated);
    if (next === undefined) forbidden.push(`${sequence} ${operation} while ${state}`);
    wasRotated ||= operation === "ROTATE";
    state = next ?? state;
  }
  return forbidden;
}

describeReplicas("64 callers on two servers who race for one name", (startTwo) => {
  it("win each state once, and get signatures only from versions that were ACTIVE", async () => {
    const [one, other] = await startTwo();
    const { kms } = one;
    await kms.createKey({ algorithm: "ML-DSA-44", name: "contested" });
    let isRacing = true;
    const schedules = (async () => {
      while (isRacing) await Promise.all([one.doDueWork(), other.doDueWork()]);
    })();
    const race = async (_: unknown, i: number): Promise<void> => {
      const { kms: mine } = i % 2 === 0 ? one : other;
      for (let call = 0; call < callsOfEach; call += 1) {
        const deed = present(deeds[Math.floor(Math.random() * deeds.length)]);
        await deed(mine, "name/contested").catch(() => {});
      }
    };
    await Promise.all(Array.from({ length: callers }, race));
    isRacing = false;
    await schedules;
    const entries = await readAudit(kms, "name/contested");
    const byKey = Map.groupBy(entries, ({ keyId }) => keyId);
    const { versions } = await kms.getKey({ keyId: "name/contested" });
    expect([...byKey.keys()].sort()).toEqual(versions.map(({ keyId }) => keyId).sort());
    expect([...byKey.values()].flatMap(findForbidden)).toEqual([]);
    expect(versions.filter(({ isPrimary }) => isPrimary)).toHaveLength(1);
    expect(versions.map(({ version }) => version)).toEqual(versions.map((_, i) => i + 1));
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true });
  });
});
