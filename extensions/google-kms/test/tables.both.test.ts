/** The key ring table: what must never change, and stores with and without it. */
import { expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { OpenMode } from "../../../src/database/database.ts";
import { openStore } from "../../../src/open-store.ts";
import { tagRecord } from "../../../src/records/tag.ts";
import type { Store } from "../../../src/store/store.ts";
import { describeStores, type Place } from "../../../test/support/on-both.ts";
import { coreTables } from "../../../test/support/open-store.ts";
import { pinSteps } from "../../../test/support/pin-steps.ts";
import { storageError } from "../../../test/support/storage-error.ts";
import { createRingStore, googleTables } from "../tables.ts";

const ring = {
  owner: "user:ada",
  name: "projects/p/keyRings/r",
  createdAt: new Date("2026-01-02T03:04:05.678Z"),
};

/** Opens a store with a program that lacks this extension. */
async function openWithout({ location, masterKey }: Place, mode: OpenMode = "create"): Promise<Store> {
  const provider = await createCryptoProvider("openssl");
  onTestFinished(() => provider.close());
  return openStore({ location, masterKey, provider, mode, tables: coreTables });
}

pinSteps([googleTables], {
  sqlite: { "0002-google-kms": "835e140ef112103a" },
  postgres: { "0002-google-kms": "d15f5078e0a829f4" },
});

describeStores("a key ring", (makePlace) => {
  it("always has the same tag", async () => {
    const place = await makePlace();
    const store = await place.open();
    const key = new Uint8Array(32).fill(7);
    const rings = createRingStore({ ...store, tagRecord: (fields) => tagRecord(key, fields) });
    await store.write((transaction) => rings.insert(transaction, ring));
    expect(await place.query("select record_tag from google_key_rings")).toEqual([
      { record_tag: "53ec2fbba424102c1bf57fc9a152b73da4fb0ad42e0bf29b99c83a862a93e30c" },
    ]);
  });
});

describeStores("a store with key rings", (makePlace) => {
  const modes = ["create", "upgrade", "existing"] as const;
  it.each(modes)(
    "is rejected unchanged by a program that lacks its step, which it names (mode %s)",
    async (mode) => {
      const place = await makePlace();
      const store = await place.open();
      await store.write((transaction) => createRingStore(store).insert(transaction, ring));
      await store.close();
      await expect(openWithout(place, mode)).rejects.toThrow(
        storageError(/has the migration steps 0002-google-kms,.* of .* an extension that it lacks/),
      );
      const again = await place.open();
      expect(await createRingStore(again).find(ring.owner, ring.name)).toEqual(ring);
    },
  );
});

describeStores("a store from before the extension was added", (makePlace) => {
  it("gets its table on the next start", async () => {
    const place = await makePlace();
    await (await openWithout(place)).close();
    await expect(place.query("select * from google_key_rings")).rejects.toThrow(/google_key_rings/);
    const store = await place.open();
    await store.write((transaction) => createRingStore(store).insert(transaction, ring));
    expect(await createRingStore(store).find(ring.owner, ring.name)).toEqual(ring);
  });
});
