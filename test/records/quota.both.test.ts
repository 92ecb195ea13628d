import { expect, it } from "vitest";
import type { AnswerCodec } from "../../src/records/idempotency.ts";
import { noLimits, recordQuota } from "../../src/records/quota.ts";
import type { Store } from "../../src/store/store.ts";
import { describeStores } from "../support/on-both.ts";

const hourMs = 3600 * 1000;
const codec: AnswerCodec<string> = {
  encode: (answer) => Buffer.from(answer),
  decode: (bytes) => Buffer.from(bytes).toString(),
};

/** Makes a call with an idempotency key. */
function call(store: Store, idempotencyKey: string, userId = "ada"): Promise<string> {
  return store.runIdempotent({ userId, idempotencyKey, requestHash: "aa" }, codec, (write) =>
    write(async () => idempotencyKey),
  );
}

describeStores("the idempotency key quota", (makePlace) => {
  it("counts each user's keys over 24 hours", async () => {
    const clock = { ms: Date.UTC(2026, 0, 1) };
    const quotas = { ...noLimits, idempotencyKeys: 2 };
    const store = await (await makePlace()).open({ now: () => new Date(clock.ms), quotas });
    await call(store, "1");
    clock.ms += hourMs;
    await call(store, "2");
    await expect(call(store, "3")).rejects.toMatchObject({ limit: 2 });
    expect(await call(store, "3", "bob")).toBe("3");
    expect(await call(store, "2")).toBe("2");
    clock.ms += 23 * hourMs;
    await call(store, "3");
    await expect(call(store, "4")).rejects.toMatchObject({ limit: 2 });
  });

  it("stays correct when a key is reused after a day, and when many expire at once", async () => {
    const clock = { ms: Date.UTC(2026, 0, 1) };
    const place = await makePlace();
    const store = await place.open({ now: () => new Date(clock.ms) });
    const keys = Array.from({ length: 300 }, (_, i) => `key ${i}`);
    await Promise.all(keys.map((key) => call(store, key)));
    const count = async () => {
      const [kept] = await place.query("select count(*) as rows from idempotent_answers");
      const counted = await place.query(
        "select row_count from list_counts where list_name = 'idempotent_answers by=ada'",
      );
      return [Number(kept?.rows), counted[0]?.row_count];
    };
    expect(await count()).toEqual([300, 300]);
    clock.ms += 24 * hourMs;
    await call(store, "key 299");
    const [kept, counted] = await count();
    expect(kept).toBeLessThanOrEqual(101);
    expect(counted).toBe(kept);
    await call(store, "another");
    expect(await count()).toEqual([2, 2]);
  });
});

describeStores("a quota", (makePlace) => {
  it("means no limit if 0, and applies per owner", async () => {
    const quotas = { ...noLimits, tunnels: 1 };
    const store = await (await makePlace()).open({ quotas });
    await store.write(({ db }) =>
      db.insertInto("list_counts").values({ list_name: "things by=ada", row_count: 1 }).execute(),
    );
    await store.requireRoom(recordQuota("things", "things"), "ada", 1_000_000);
    const quota = { list: "things", noun: "things", kind: "tunnels" } as const;
    await expect(store.requireRoom(quota, "ada")).rejects.toThrow(/quota of 1 things/);
    await store.requireRoom(quota, "bob");
    await expect(store.requireRoom(quota, "bob", 2)).rejects.toThrow(/quota of 1 things/);
  });
});
