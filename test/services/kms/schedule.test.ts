/** Scheduled destructions and rotations of keys. */
import { expect, it } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { present } from "../answers.ts";
import {
  createKey,
  describeKms,
  type KmsServer,
  readDeeds,
  startKmsServer,
  verifiesOutside,
} from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const data = bytesOf("hello");
const day = 86_400;
const stateInvalid = { code: "FailedPrecondition", reason: "KEY_STATE_INVALID" };

/** A clock that stands still until a test moves it. */
function makeClock() {
  let nowMs = Date.parse("2026-11-23T10:00:00.000Z");
  return {
    now: () => new Date(nowMs),
    pass(seconds: number) {
      nowMs += seconds * 1000;
    },
  };
}

async function statusOf({ kms }: KmsServer, keyId: string): Promise<string | undefined> {
  return (await kms.getKey({ keyId })).result?.status;
}

describeKms("a scheduled destruction", (start) => {
  it.each(["ML-DSA-44", "SLH-DSA-SHA2-128f", "ML-KEM-512"])(
    "destroys a %s key once when due, with one entry",
    async (algorithm) => {
      const clock = makeClock();
      const server = await start({ now: clock.now });
      const { kms } = server;
      const { keyId } = await createKey(kms, { algorithm });
      const answer = await kms.destroyKey({ keyId, afterSeconds: day });
      expect(answer).toMatchObject({
        newStatus: "DESTROY_SCHEDULED",
        destroyAt: { seconds: 1_795_514_400n },
      });
      clock.pass(day - 1);
      await server.doDueWork();
      expect(await statusOf(server, keyId)).toBe("DESTROY_SCHEDULED");
      clock.pass(1);
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
    },
  );

  it("is cancelled with RestoreKey; the key is then disabled", async () => {
    const clock = makeClock();
    const server = await start({ now: clock.now });
    const { kms } = server;
    const key = await createKey(kms);
    const { keyId } = key;
    await kms.destroyKey({ keyId, afterSeconds: day });
    expect((await kms.restoreKey({ keyId })).result).toMatchObject({ keyId, status: "DISABLED" });
    expect((await kms.getKey({ keyId })).result?.destroyAt).toBeUndefined();
    expect(await refusal(kms.sign({ keyId, data }))).toEqual(stateInvalid);
    clock.pass(2 * day);
    await server.doDueWork();
    expect((await kms.enableKey({ keyId })).result?.status).toBe("ACTIVE");
    const { signature } = present((await kms.sign({ keyId, data })).result);
    expect(verifiesOutside(key, data, signature)).toBe(true);
  });

  it("cannot be cancelled once it is due, even if no server has destroyed the key yet", async () => {
    const clock = makeClock();
    const server = await start({ now: clock.now });
    const { kms } = server;
    const { keyId } = await createKey(kms);
    await kms.destroyKey({ keyId, afterSeconds: 1 });
    clock.pass(1);
    expect(await refusal(kms.restoreKey({ keyId }))).toEqual(stateInvalid);
    await server.doDueWork();
    expect(await statusOf(server, keyId)).toBe("DESTROYED");
  });

  it("acts once for each of 64 keys when two servers race, and one is killed and restarted", async () => {
    const clock = makeClock();
    const one = await start({ now: clock.now });
    const other = await startKmsServer({ database: one.database, now: clock.now });
    const keys = await Promise.all(Array.from({ length: 64 }, () => createKey(one.kms)));
    await Promise.all(keys.map(({ keyId }) => one.kms.destroyKey({ keyId, afterSeconds: 60 })));
    clock.pass(60);
    const racing = [one.doDueWork(), other.doDueWork(), one.doDueWork(), other.doDueWork()];
    await Promise.allSettled(racing);
    const third = await startKmsServer({ database: one.database, now: clock.now });
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
    expect(await refusal(kms.destroyKey({ keyId, afterSeconds: 2 * day }))).toEqual(stateInvalid);
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
    expect(await refusal(kms.sign({ keyId, data }))).toEqual(stateInvalid);
  });

  it.each([10_368_001, 4_294_967_295])("rejects a waiting period of %d seconds", async (afterSeconds) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.destroyKey({ keyId, afterSeconds }))).toEqual({
      code: "InvalidArgument",
      reason: "FIELD_INVALID",
      fields: ["afterSeconds"],
    });
  });
});

describeKms("a scheduled rotation", (start) => {
  it("creates the next version when due, and is due again a period later", async () => {
    const clock = makeClock();
    const server = await start({ now: clock.now });
    const { kms } = server;
    const made = await kms.createKey({ algorithm: "ML-DSA-44", name: "yearly", rotationPeriodSeconds: day });
    expect(made.result).toMatchObject({ rotationPeriodSeconds: day });
    for (const version of [2, 3]) {
      clock.pass(day - 1);
      await server.doDueWork();
      clock.pass(1);
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
    const clock = makeClock();
    const server = await start({ now: clock.now });
    const { kms } = server;
    await kms.createKey({ algorithm: "ML-DSA-44", name: "paused", rotationPeriodSeconds: day });
    await kms.disableKey({ keyId: "name/paused" });
    clock.pass(day);
    await server.doDueWork();
    await server.doDueWork();
    const refused = (await readDeeds(kms, "name/paused")).slice(2);
    expect(refused).toEqual(["ROTATE REFUSED reason=KEY_STATE_INVALID"]);
    await kms.enableKey({ keyId: "name/paused" });
    clock.pass(3600);
    await server.doDueWork();
    expect((await kms.getKey({ keyId: "name/paused" })).result?.version).toBe(2);
  });

  it("ends when the key is destroyed", async () => {
    const clock = makeClock();
    const server = await start({ now: clock.now });
    const { kms } = server;
    await kms.createKey({ algorithm: "ML-DSA-44", name: "gone", rotationPeriodSeconds: day });
    await kms.destroyKey({ keyId: "name/gone" });
    clock.pass(day);
    for (let hour = 0; hour < 3; hour += 1) {
      await server.doDueWork();
      clock.pass(3600);
    }
    const deeds = (await readDeeds(kms, "name/gone")).filter((deed) => deed.startsWith("ROTATE"));
    expect(deeds).toEqual(["ROTATE REFUSED reason=KEY_STATE_INVALID"]);
    expect((await kms.getKey({ keyId: "name/gone" })).result?.nextRotationAt).toBeUndefined();
  });

  it("restarts the period after a rotation by a caller", async () => {
    const clock = makeClock();
    const server = await start({ now: clock.now });
    const { kms } = server;
    await kms.createKey({ algorithm: "ML-DSA-44", name: "mixed", rotationPeriodSeconds: day });
    clock.pass(day - 1);
    await kms.rotateKey({ keyId: "name/mixed" });
    clock.pass(1);
    await server.doDueWork();
    expect((await kms.getKey({ keyId: "name/mixed" })).result?.version).toBe(2);
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
