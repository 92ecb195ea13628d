/** Verifying many keys: few reads, and threads for the computation. */
import { expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { systemPrincipal } from "../../../src/records/ownership.ts";
import { verifySecrets } from "../../../src/secrets/verify-secrets.ts";
import { storeKey } from "../../../src/services/kms/create.ts";
import { createKmsStore } from "../../../src/services/kms/store.ts";
import { verifyKeys } from "../../../src/services/kms/verify-keys.ts";
import type { Store } from "../../../src/store/store.ts";
import { describeStores, type Place } from "../../support/on-both.ts";
import { openCounted } from "../../support/thread-messages.ts";

const provider = await createCryptoProvider("openssl");

/**
 * Adds keys that share one key pair, which is quick.
 *
 * @returns their IDs
 */
async function addKeys(store: Store, count: number): Promise<string[]> {
  const keys = createKmsStore(store);
  const { secretKey } = await provider.generateKeyPair("ML-DSA-44");
  const added = { alias: "", algorithm: "ML-DSA-44", usage: "SIGN", name: "", labels: {} } as const;
  return store.write(async (transaction) => {
    const made: string[] = [];
    for (let i = 0; i < count; i++) {
      const input = { ...added, rotationPeriodSeconds: undefined, secretKey, principal: systemPrincipal };
      const { keyId = "" } = await storeKey({ keys, now: () => new Date() }, transaction, input);
      made.push(keyId);
    }
    return made;
  });
}

async function verifyAll(store: Store, { location, masterKey }: Place) {
  const deps = { store, keys: createKmsStore(store), provider, location, masterKey };
  const keys = await verifyKeys({ ...deps, onProgress: () => {} });
  return { keys, secrets: await verifySecrets(store, () => {}, keys.opened) };
}

describeStores("key verification", (makePlace) => {
  it("needs as many reads for 400 keys as for 10", async () => {
    const place = await makePlace();
    const { store, countMessages } = await openCounted(() => place.open());
    await addKeys(store, 10);
    const few = await countMessages(() => verifyAll(store, place));
    await addKeys(store, 390);
    const many = await countMessages(() => verifyAll(store, place));
    // The store also has background work of its own.
    expect(many).toBeLessThan(few + 100);
  });

  it("finds one swapped secret among 1,200 keys, which threads check", async () => {
    const place = await makePlace();
    const store = await place.open();
    const keyIds = await addKeys(store, 1200);
    expect(await verifyAll(store, place)).toMatchObject({
      keys: { checked: 1200, faults: [] },
      secrets: { checked: 1202, broken: [] },
    });
    const other = (await provider.generateKeyPair("ML-DSA-44")).secretKey.exportSeed() ?? new Uint8Array();
    const identity = `kms_keys/${keyIds[777]}/secret-key`;
    await store.write(async ({ eraseSecret, putSecret }) => {
      await eraseSecret(identity);
      await putSecret(identity, other);
    });
    const { keys, secrets } = await verifyAll(store, place);
    expect(keys.faults).toEqual([
      { keyId: keyIds[777], reason: "its secret key was changed outside the server" },
    ]);
    expect(secrets.broken).toEqual([]);
  });
});
