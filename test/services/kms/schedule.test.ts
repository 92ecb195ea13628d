/** Scheduled destructions and rotations of keys. */
import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, stateRefuses } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import {
  createKey,
  describeKms,
  type KmsServer,
  readDeeds,
  type StartOptions,
  startKmsServer,
  verifiesOutside,
} from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const data = bytesOf("hello");
const day = 86_400;

/** Starts a server whose clock stands still until a test moves it. */
async function startAt(start: (options: StartOptions) => Promise<KmsServer>) {
  let nowMs = Date.parse("2026-11-23T10:00:00.000Z");
  const now = () => new Date(nowMs);
  const pass = (seconds: number): void => {
    nowMs += seconds * 1000;
  };
  return { ...(await start({ now })), now, pass };
}

async function statusOf({ kms }: KmsServer, keyId: string): Promise<string | undefined> {
  return (await kms.getKey({ keyId })).result?.status;
}

describeKms("a scheduled destruction", (start) => {
  it("destroys a key once when due, with one entry", async () => {
    const server = await startAt(start);
    const { kms, pass } = server;
    const { keyId } = await createKey(kms);
    const answer = await kms.destroyKey({ keyId, afterSeconds: day });
    expect(answer).toMatchObject({ newStatus: "DESTROY_SCHEDULED", destroyAt: { seconds: 1_795_514_400n } });
    pass(day - 1);
    await server.doDueWork();
    expect(await statusOf(server, keyId)).toBe("DESTROY_SCHEDULED");
    pass(1);
    await server.doDueWork();
    await server.doDueWork();
    expect(await statusOf(server, keyId)).toBe("DESTROYED");
    expect(await readDeeds(kms, keyId)).toEqual([
      expect.stringMatching(/^CREATE OK /),
      "SCHEDULE_DESTROY OK stateBefore=ACTIVE, destroyAt=2026-11-24T10:00:00.000Z",
      "DESTROY OK stateBefore=DESTROY_SCHEDULED",
    ]);
    const [last] = (await readAudit(kms, keyId)).slice(-1);
    expect(last).toMatchObject({ user: "schedule", clientAddress: "", requestId: "" });
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true });
  });

  it("is cancelled with RestoreKey; the key is then disabled", async () => {
    const server = await startAt(start);
    const { kms, pass } = server;
    const key = await createKey(kms);
    const { keyId } = key;
    await kms.destroyKey({ keyId, afterSeconds: day });
    expect((await kms.restoreKey({ keyId })).result).toMatchObject({ keyId, status: "DISABLED" });
    expect((await kms.getKey({ keyId })).result?.destroyAt).toBeUndefined();
    expect(await refusal(kms.sign({ keyId, data }))).toEqual(stateRefuses);
    pass(2 * day);
    await server.doDueWork();
    expect((await kms.enableKey({ keyId })).result?.status).toBe("ACTIVE");
    const { signature } = present((await kms.sign({ keyId, data })).result);
    expect(verifiesOutside(key, data, signature)).toBe(true);
  });

  it("cannot be cancelled once it is due, even if no server has destroyed the key yet", async () => {
    const server = await startAt(start);
    const { kms, pass } = server;
    const { keyId } = await createKey(kms);
    await kms.destroyKey({ keyId, afterSeconds: 1 });
    pass(1);
    expect(await refusal(kms.restoreKey({ keyId }))).toEqual(stateRefuses);
    await server.doDueWork();
    expect(await statusOf(server, keyId)).toBe("DESTROYED");
  });

  it("acts once for each of 64 keys when two servers race, and one is killed and restarted", async () => {
    const one = await startAt(start);
    const other = await startKmsServer({ database: one.database, now: one.now });
    const keys = await Promise.all(Array.from({ length: 64 }, () => createKey(one.kms)));
    await Promise.all(keys.map(({ keyId }) => one.kms.destroyKey({ keyId, afterSeconds: 60 })));
    one.pass(60);
    const racing = [one.doDueWork(), other.doDueWork(), one.doDueWork(), other.doDueWork()];
    await Promise.allSettled(racing);
    const third = await startKmsServer({ database: one.database, now: one.now });
    await third.doDueWork();
    const entries = (await readAudit(third.kms)).filter(({ operation }) => operation === "DESTROY");
    expect(entries.map(({ keyId }) => keyId).sort()).toEqual(keys.map(({ keyId }) => keyId).sort());
    expect((await third.kms.listKeys({ status: "DESTROYED" })).totalSize).toBe(64);
  });
});

describeKms("a key with a scheduled destruction", (_start, shared) => {
  it("can be destroyed immediately, but not scheduled again", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    await kms.destroyKey({ keyId, afterSeconds: day });
    expect(await refusal(kms.destroyKey({ keyId, afterSeconds: 2 * day }))).toEqual(stateRefuses);
    expect(await kms.destroyKey({ keyId })).toMatchObject({ newStatus: "DESTROYED" });
  });

  it("that was rotated before never signs again, even if it is restored and enabled", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const { newKey } = await kms.rotateKey({ keyId });
    await kms.destroyKey({ keyId, afterSeconds: day });
    await kms.restoreKey({ keyId });
    const { result } = await kms.enableKey({ keyId });
    expect(result).toMatchObject({ status: "ROTATED", replacedBy: newKey?.keyId });
    expect(await refusal(kms.sign({ keyId, data }))).toEqual(stateRefuses);
  });

  it.each([10_368_001, 4_294_967_295])("rejects a waiting period of %d seconds", async (afterSeconds) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.destroyKey({ keyId, afterSeconds }))).toEqual(invalid("afterSeconds"));
  });
});

describeKms("a scheduled rotation", (start) => {
  it("creates the next version when due, and is due again a period later", async () => {
    const server = await startAt(start);
    const { kms, pass } = server;
    const made = await kms.createKey({ algorithm: "ML-DSA-44", name: "yearly", rotationPeriodSeconds: day });
    expect(made.result).toMatchObject({ rotationPeriodSeconds: day });
    for (const version of [2, 3]) {
      pass(day - 1);
      await server.doDueWork();
      pass(1);
      await Promise.all([server.doDueWork(), server.doDueWork()]);
      const { result, versions } = await kms.getKey({ keyId: "name/yearly" });
      expect(result).toMatchObject({ version, isPrimary: true, rotationPeriodSeconds: day });
      expect(versions).toHaveLength(version);
      expect(versions[0]).not.toHaveProperty("nextRotationAt");
    }
    const deeds = (await readAudit(kms, "name/yearly")).filter(({ operation }) => operation === "ROTATE");
    expect(deeds.map(({ user, outcome }) => [user, outcome])).toEqual([
      ["schedule", "OK"],
      ["schedule", "OK"],
    ]);
  });

  it("waits for a disabled key, logs that once an hour, and follows when the key is enabled", async () => {
    const server = await startAt(start);
    const { kms, pass } = server;
    await kms.createKey({ algorithm: "ML-DSA-44", name: "paused", rotationPeriodSeconds: day });
    await kms.disableKey({ keyId: "name/paused" });
    pass(day);
    await server.doDueWork();
    await server.doDueWork();
    const refused = (await readDeeds(kms, "name/paused")).slice(2);
    expect(refused).toEqual(["ROTATE REFUSED reason=KEY_STATE_INVALID"]);
    await kms.enableKey({ keyId: "name/paused" });
    pass(3600);
    await server.doDueWork();
    expect((await kms.getKey({ keyId: "name/paused" })).result?.version).toBe(2);
  });

  it("ends when the key is destroyed", async () => {
    const server = await startAt(start);
    const { kms, pass } = server;
    await kms.createKey({ algorithm: "ML-DSA-44", name: "gone", rotationPeriodSeconds: day });
    await kms.destroyKey({ keyId: "name/gone" });
    pass(day);
    for (let hour = 0; hour < 3; hour += 1) {
      await server.doDueWork();
      pass(3600);
    }
    const deeds = (await readDeeds(kms, "name/gone")).filter((deed) => deed.startsWith("ROTATE"));
    expect(deeds).toEqual(["ROTATE REFUSED reason=KEY_STATE_INVALID"]);
    expect((await kms.getKey({ keyId: "name/gone" })).result?.nextRotationAt).toBeUndefined();
  });
});

describeKms("a rotation period", (_start, shared) => {
  it.each([
    ["without a name", { rotationPeriodSeconds: day }],
    ["with a period of less than a day", { name: "short", rotationPeriodSeconds: day - 1 }],
  ])("is rejected %s", async (_what, fields) => {
    const { kms } = await shared();
    expect(await refusal(kms.createKey(fields))).toMatchObject({ reason: "FIELD_INVALID" });
  });
});
