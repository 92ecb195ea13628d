import { describe, expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { describePostgres, freshDatabaseUrl } from "../../support/postgres.ts";
import { outcomesOf, refusal } from "../../support/refusal.ts";
import { stateRefuses } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import {
  createKey,
  databaseAt,
  describeReplicas,
  type KmsClient,
  type KmsServer,
  readDeeds,
  startKmsServer,
  verifiesOutside,
} from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const data = bytesOf("hello");
const changes = ["rotate", "destroy"] as const;

function retire(kms: KmsClient, keyId: string, change: (typeof changes)[number]): Promise<unknown> {
  return change === "rotate" ? kms.rotateKey({ keyId }) : kms.destroyKey({ keyId });
}

/** Signs continuously from several callers, until each is refused; returns the refusals. */
async function signUntilRefused(clients: readonly KmsClient[], keyId: string) {
  const sign = async (kms: KmsClient): Promise<never> => {
    for (;;) await kms.sign({ keyId, data });
  };
  return Promise.all(clients.map((kms) => refusal(sign(kms))));
}

/** Returns the operations on a key, starting with the one that retired it. */
async function deedsFrom(kms: KmsClient, keyId: string, change: string): Promise<string[]> {
  const deeds = await readDeeds(kms, keyId);
  return deeds.slice(deeds.findIndex((deed) => deed.startsWith(`${change.toUpperCase()} OK`)) + 1);
}

describeReplicas("replicas", (startTwo) => {
  const start = async () => (await startTwo()) as [KmsServer, KmsServer];

  it("see each other's keys immediately", async () => {
    const [here, there] = await start();
    const key = await createKey(here.kms, { alias: "till" });
    const { result } = await there.kms.sign({ keyId: key.keyId, data });
    const { signature } = present(result);
    expect(verifiesOutside(key, data, signature)).toBe(true);
    expect((await here.kms.verify({ keyId: key.keyId, data, signature })).result?.valid).toBe(true);
    expect((await there.kms.getKey({ keyId: key.keyId })).result).toMatchObject(key);
    expect((await there.kms.listKeys({})).keys.map(({ keyId }) => keyId)).toEqual([key.keyId]);
    expect((await there.kms.getHealth({})).keyCount).toBe(1);
  });

  describe.each(changes)("that %s a key", (change) => {
    it("reject it everywhere for each of its uses", async () => {
      const [here, there] = await start();
      const signing = await createKey(here.kms);
      const kem = await createKey(here.kms, { algorithm: "ML-KEM-512" });
      const { signature } = present((await there.kms.sign({ keyId: signing.keyId, data })).result);
      const { ciphertext } = present((await there.kms.encapsulate({ keyId: kem.keyId })).result);
      await there.kms.decapsulate({ keyId: kem.keyId, ciphertext });
      for (const { keyId } of [signing, kem]) await retire(here.kms, keyId, change);
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
      expect(await outcomesOf(kept)).toEqual({
        answered,
        refusals: Array(2 - answered).fill(stateRefuses),
      });
    });

    it("sign until then, and not afterwards", async () => {
      const [here, there] = await start();
      for (let round = 0; round < 3; round += 1) {
        const { keyId } = await createKey(here.kms);
        const clients = [...Array(6).fill(there.kms), here.kms, here.kms];
        const refusals = signUntilRefused(clients, keyId);
        await there.kms.sign({ keyId, data });
        await retire(here.kms, keyId, change);
        expect(await refusals).toEqual(Array(8).fill(stateRefuses));
        // Each server has one entry, and counts the others.
        const later = await deedsFrom(here.kms, keyId, change);
        expect(later).toEqual(Array(2).fill("SIGN REFUSED reason=KEY_STATE_INVALID"));
      }
    });

    it("let one of 64 racing callers win, 32 on each server", async () => {
      const [here, there] = await start();
      const { keyId } = await createKey(here.kms);
      const calls = Array.from({ length: 32 }, () => [here, there])
        .flat()
        .map(({ kms }) => retire(kms, keyId, change));
      expect(await outcomesOf(calls)).toEqual({ answered: 1, refusals: Array(63).fill(stateRefuses) });
      expect((await here.kms.getHealth({})).keyCount).toBe(change === "rotate" ? 2 : 1);
      const deeds = (await readDeeds(there.kms, keyId)).slice(1);
      expect(deeds.filter((deed) => deed.startsWith(`${change.toUpperCase()} OK`))).toHaveLength(1);
      // Each server has one entry, and counts the others.
      const refused = deeds.filter((deed) => deed.includes(" REFUSED "));
      expect(new Set(refused)).toEqual(new Set([`${change.toUpperCase()} REFUSED reason=KEY_STATE_INVALID`]));
      expect([1, 2]).toContain(refused.length);
    });
  });

  it("write one audit log", async () => {
    const [here, there] = await start();
    const keys = await Promise.all([createKey(here.kms), createKey(there.kms)]);
    const calls = [here, there].flatMap(({ kms }) =>
      keys.flatMap(({ keyId }) => Array.from({ length: 20 }, () => kms.sign({ keyId, data }))),
    );
    await Promise.all(calls);
    const entries = await readAudit(here.kms);
    expect(entries.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 82 }, (_, i) => i + 1));
    expect(await readAudit(there.kms)).toEqual(entries);
    const [one, other] = [await here.kms.verifyAuditLog({}), await there.kms.verifyAuditLog({})];
    expect(one).toMatchObject({ valid: true, entries: 82, head: entries.at(-1)?.entryHash });
    expect(other).toMatchObject({ valid: true, entries: 82, head: one.head });
    expect(other.checkpoint?.publicKey).toEqual(one.checkpoint?.publicKey);
  });
});

describePostgres("two servers on a database with a different default isolation level", () => {
  it.each(["repeatable read", "serializable"])(
    "(%s) write one audit log, and find no damage",
    async (level) => {
      const option = `-c default_transaction_isolation=${level.replace(" ", "\\ ")}`;
      const database = databaseAt(`${await freshDatabaseUrl()}?options=${encodeURIComponent(option)}`);
      const servers = [await startKmsServer({ database }), await startKmsServer({ database })];
      const { keyId } = await createKey(present(servers[0]).kms);
      const sign = async ({ kms }: KmsServer) => {
        for (let i = 0; i < 20; i += 1) await kms.sign({ keyId, data });
      };
      await Promise.all([...servers, ...servers, ...servers].map(sign));
      expect(await present(servers[1]).kms.verifyAuditLog({})).toMatchObject({ valid: true, entries: 121 });
    },
  );
});
