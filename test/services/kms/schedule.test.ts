/** Scheduled destructions and rotations of keys. */
import { expect, it } from "vitest";
import type { BackgroundFailure } from "../../../src/database/background.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { stateRefuses } from "../../support/refusals.ts";
import {
  createClock,
  createKey,
  describeKms,
  type KmsServer,
  readDeeds,
  type StartOptions,
  sign,
  startKmsServer,
  verifiesOutside,
  withKey,
} from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const data = bytesOf("hello");
const day = 86_400;

/** Starts a server with a clock, which records what background work reports. */
async function startAt(start: (options: StartOptions) => Promise<KmsServer>) {
  const clock = createClock();
  const failures: BackgroundFailure[] = [];
  const overdue = new Map<string, readonly [items: number, oldestSeconds: number]>();
  const background = {
    started: () => {},
    failed: (failure: BackgroundFailure) => void failures.push(failure),
    overdue: (work: string, items: number, oldestSeconds: number) =>
      void overdue.set(work, [items, oldestSeconds]),
  };
  const server = await start({ now: clock.now, background });
  const statusOf = async (keyId: string) => (await server.kms.getKey({ keyId })).result?.status;
  const setState = (key_state: string, keyIds: readonly string[]) =>
    server.tamper((db) =>
      db.updateTable("kms_keys").set({ key_state }).where("key_id", "in", keyIds).execute(),
    );
  const passAndWork = async (seconds: number): Promise<void> => {
    clock.pass(seconds);
    await server.doDueWork();
  };
  return { ...server, ...clock, failures, overdue, statusOf, setState, passAndWork };
}

describeKms("a scheduled destruction", (start) => {
  it("destroys a key once when due, with one entry", async () => {
    const server = await withKey(startAt(start));
    const { kms, keyId } = server;
    const answer = await kms.destroyKey({ keyId, afterSeconds: day });
    expect(answer).toMatchObject({ newStatus: "DESTROY_SCHEDULED", destroyAt: { seconds: 1_795_514_400n } });
    await server.passAndWork(day - 1);
    expect(await server.statusOf(keyId)).toBe("DESTROY_SCHEDULED");
    await server.passAndWork(1);
    await server.doDueWork();
    expect(await server.statusOf(keyId)).toBe("DESTROYED");
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
    const { kms } = server;
    const key = await createKey(kms);
    const { keyId } = key;
    await kms.destroyKey({ keyId, afterSeconds: day });
    expect((await kms.restoreKey({ keyId })).result).toMatchObject({ keyId, status: "DISABLED" });
    expect((await kms.getKey({ keyId })).result?.destroyAt).toBeUndefined();
    expect(await refusal(kms.sign({ keyId, data }))).toEqual(stateRefuses);
    await server.passAndWork(2 * day);
    expect((await kms.enableKey({ keyId })).result?.status).toBe("ACTIVE");
    expect(verifiesOutside(key, data, await sign(kms, { keyId, data }))).toBe(true);
  });

  it("cannot be cancelled once it is due, even if no server has destroyed the key yet", async () => {
    const server = await withKey(startAt(start));
    const { kms, pass, keyId } = server;
    await kms.destroyKey({ keyId, afterSeconds: 1 });
    pass(1);
    expect(await refusal(kms.restoreKey({ keyId }))).toEqual(stateRefuses);
    await server.doDueWork();
    expect(await server.statusOf(keyId)).toBe("DESTROYED");
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

  it("of a rotated key never lets it sign again, even if it is restored and enabled", async () => {
    const { kms, keyId } = await withKey(start({}));
    const { newKey } = await kms.rotateKey({ keyId });
    await kms.destroyKey({ keyId, afterSeconds: day });
    await kms.restoreKey({ keyId });
    const { result } = await kms.enableKey({ keyId });
    expect(result).toMatchObject({ status: "ROTATED", replacedBy: newKey?.keyId });
    expect(await refusal(kms.sign({ keyId, data }))).toEqual(stateRefuses);
  });
});

describeKms("a scheduled rotation", (start) => {
  it("creates the next version when due, and is due again a period later", async () => {
    const server = await startAt(start);
    const { kms, pass } = server;
    const made = await createKey(kms, { name: "yearly", rotationPeriodSeconds: day });
    expect(made).toMatchObject({ rotationPeriodSeconds: day });
    for (const version of [2, 3]) {
      await server.passAndWork(day - 1);
      pass(1);
      await Promise.all([server.doDueWork(), server.doDueWork()]);
      const { result, versions } = await kms.getKey({ keyId: "name/yearly" });
      expect(result).toMatchObject({ version, isPrimary: true, rotationPeriodSeconds: day });
      expect(versions).toHaveLength(version);
      expect(versions[0]).not.toHaveProperty("nextRotationAt");
    }
    const deeds = (await readAudit(kms, "name/yearly")).filter(({ operation }) => operation === "ROTATE");
    expect(deeds).toMatchObject(Array(2).fill({ user: "schedule", outcome: "OK" }));
  });

  it("waits for a disabled key, logs that once an hour, and follows when the key is enabled", async () => {
    const server = await startAt(start);
    const { kms } = server;
    await createKey(kms, { name: "paused", rotationPeriodSeconds: day });
    await kms.disableKey({ keyId: "name/paused" });
    await server.passAndWork(day);
    await server.doDueWork();
    const refused = (await readDeeds(kms, "name/paused")).slice(2);
    expect(refused).toEqual(["ROTATE REFUSED reason=KEY_STATE_INVALID"]);
    await kms.enableKey({ keyId: "name/paused" });
    await server.passAndWork(3600);
    expect((await kms.getKey({ keyId: "name/paused" })).result?.version).toBe(2);
  });

  it("ends when the key is destroyed", async () => {
    const server = await startAt(start);
    const { kms } = server;
    await createKey(kms, { name: "gone", rotationPeriodSeconds: day });
    await kms.destroyKey({ keyId: "name/gone" });
    for (const seconds of [day, 3600, 3600]) await server.passAndWork(seconds);
    const deeds = (await readDeeds(kms, "name/gone")).filter((deed) => deed.startsWith("ROTATE"));
    expect(deeds).toEqual(["ROTATE REFUSED reason=KEY_STATE_INVALID"]);
    expect((await kms.getKey({ keyId: "name/gone" })).result?.nextRotationAt).toBeUndefined();
  });
});

describeKms("scheduled work that fails", (start) => {
  it("does not block the destruction of a key behind 70 damaged ones, and succeeds after their repair", async () => {
    const server = await startAt(start);
    const { kms, failures, overdue, pass } = server;
    const keys = await Promise.all(Array.from({ length: 71 }, () => createKey(kms)));
    const [last = "", ...damaged] = keys.map(({ keyId }) => keyId);
    await Promise.all(damaged.map((keyId) => kms.destroyKey({ keyId, afterSeconds: 60 })));
    await kms.destroyKey({ keyId: last, afterSeconds: 61 });
    // Other states have no destruction time, so the server cannot know what was intended.
    await server.setState("ACTIVE", damaged);
    pass(61);
    for (let call = 0; call < 3; call += 1) await server.doDueWork();
    expect(await server.statusOf(last)).toBe("DESTROYED");
    expect(failures.map(({ about }) => about?.keyId).sort()).toEqual([...damaged].sort());
    const keyId = failures[0]?.about?.keyId ?? "";
    expect(failures[0]).toMatchObject({
      ...{ work: "kms_destroy", about: { keyId, operation: "DESTROY" } },
      error: { message: expect.stringContaining(`the stored key ${keyId} was changed`) },
    });
    pass(100);
    await server.reportOverdue();
    expect(overdue.get("kms_destroy")).toEqual([70, 101]);
    expect(overdue.get("kms_rotate")).toEqual([0, 0]);
    await server.setState("DESTROY_SCHEDULED", damaged);
    for (let call = 0; call < 3; call += 1) await server.doDueWork();
    expect((await kms.listKeys({ status: "DESTROYED" })).totalSize).toBe(71);
    expect(failures).toHaveLength(70);
  });

  it("for one unreadable table does not stop work for another", async () => {
    const server = await startAt(start);
    const { keyId } = await createKey(server.kms);
    await server.kms.destroyKey({ keyId, afterSeconds: 60 });
    const rename = (from: "kms_grants", to: string) =>
      server.tamper((db) => db.schema.alterTable(from).renameTo(to).execute());
    await rename("kms_grants", "kms_grants_away");
    await expect(server.passAndWork(60)).rejects.toThrow();
    await rename("kms_grants_away" as "kms_grants", "kms_grants");
    expect(await server.statusOf(keyId)).toBe("DESTROYED");
  });
});
