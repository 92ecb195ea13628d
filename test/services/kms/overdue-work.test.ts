/** Scheduled work that fails: it leaves a trace, is retried, and blocks nothing else. */
import { expect, it } from "vitest";
import type { BackgroundFailure } from "../../../src/database/background.ts";
import { createKey, describeKms, readDeeds } from "./kms-server.ts";

/** A clock that a test moves, and a record of what the server reports. */
function observe() {
  let nowMs = Date.parse("2026-11-23T10:00:00.000Z");
  const failures: BackgroundFailure[] = [];
  const overdue = new Map<string, readonly [items: number, oldestSeconds: number]>();
  return {
    failures,
    overdue,
    pass: (seconds: number) => {
      nowMs += seconds * 1000;
    },
    options: {
      now: () => new Date(nowMs),
      background: {
        started: () => {},
        failed: (failure: BackgroundFailure) => void failures.push(failure),
        overdue: (work: string, items: number, oldestSeconds: number) =>
          void overdue.set(work, [items, oldestSeconds]),
      },
    },
  };
}

describeKms("scheduled work that fails", (start) => {
  it("does not block the destruction of a key behind 70 damaged ones", async () => {
    const { failures, pass, options, overdue } = observe();
    const server = await start(options);
    const { kms } = server;
    const keys = await Promise.all(Array.from({ length: 71 }, () => createKey(kms)));
    const damaged = keys.slice(0, 70).map(({ keyId }) => keyId);
    const last = keys[70]?.keyId ?? "";
    await Promise.all(damaged.map((keyId) => kms.destroyKey({ keyId, afterSeconds: 60 })));
    await kms.destroyKey({ keyId: last, afterSeconds: 61 });
    // Other states have no destruction time, so the server cannot know what was intended.
    await server.tamper((db) =>
      db.updateTable("kms_keys").set({ key_state: "ACTIVE" }).where("key_id", "in", damaged).execute(),
    );
    pass(61);
    for (let call = 0; call < 3; call += 1) await server.doDueWork();
    expect((await kms.getKey({ keyId: last })).result?.status).toBe("DESTROYED");
    expect(failures.map(({ about }) => about?.keyId).sort()).toEqual([...damaged].sort());
    const [{ keyId = "" } = {}] = failures.map(({ about }) => about ?? {});
    expect(failures.find(({ about }) => about?.keyId === keyId)).toMatchObject({
      work: "kms_destroy",
      about: { keyId, operation: "DESTROY" },
      error: expect.objectContaining({
        message: expect.stringContaining(`the stored key ${keyId} was changed`),
      }),
    });
    pass(100);
    await server.reportOverdue();
    expect(overdue.get("kms_destroy")).toEqual([70, 101]);
    expect(overdue.get("kms_rotate")).toEqual([0, 0]);
  });

  it("is retried after 1, 2 and 4 seconds, and succeeds once the record is repaired", async () => {
    const { failures, pass, options } = observe();
    const server = await start(options);
    const { kms } = server;
    const { keyId } = await createKey(kms);
    await kms.destroyKey({ keyId, afterSeconds: 60 });
    const setState = (key_state: string) =>
      server.tamper((db) =>
        db.updateTable("kms_keys").set({ key_state }).where("key_id", "=", keyId).execute(),
      );
    await setState("ACTIVE");
    pass(60);
    await server.doDueWork();
    for (const seconds of [1, 2, 4]) {
      const before = failures.length;
      await server.doDueWork();
      expect(failures).toHaveLength(before);
      pass(seconds);
      await server.doDueWork();
      expect(failures).toHaveLength(before + 1);
    }
    await setState("DESTROY_SCHEDULED");
    pass(8);
    await server.doDueWork();
    expect(failures).toHaveLength(4);
    expect((await readDeeds(kms, keyId)).at(-1)).toBe("DESTROY OK stateBefore=DESTROY_SCHEDULED");
  });

  it("for one unreadable table does not stop work for another", async () => {
    const { pass, options } = observe();
    const server = await start(options);
    const { kms } = server;
    const { keyId } = await createKey(kms);
    await kms.destroyKey({ keyId, afterSeconds: 60 });
    await server.tamper((db) => db.schema.alterTable("kms_grants").renameTo("kms_grants_away").execute());
    pass(60);
    await expect(server.doDueWork()).rejects.toThrow();
    await server.tamper((db) => db.schema.alterTable("kms_grants_away").renameTo("kms_grants").execute());
    expect((await kms.getKey({ keyId })).result?.status).toBe("DESTROYED");
  });
});
