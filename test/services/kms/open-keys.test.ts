/** How long the server keeps secret halves of keys open and works with them. */
import { setImmediate } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { expect, it, onTestFinished } from "vitest";
import { BatchSignRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { CryptoProvider } from "../../../src/crypto/provider.ts";
import { CryptoBusyError } from "../../../src/crypto/work-queue.ts";
import { StoreFailureError } from "../../../src/database/store-error.ts";
import { createKey } from "../../../src/services/kms/create.ts";
import { createKeyCache } from "../../../src/services/kms/key-cache.ts";
import { signBatch } from "../../../src/services/kms/sign.ts";
import { createKmsStore } from "../../../src/services/kms/store.ts";
import { bytesOf } from "../../support/bytes.ts";
import { openTestStore } from "../../support/open-store.ts";
import { systemCaller } from "../../support/system-caller.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { present } from "../answers.ts";

/** Opens a store with one key, and a cache for it. */
async function openKey() {
  const provider = await createCryptoProvider("openssl");
  const store = await openTestStore(makeTemporaryDirectory(), provider);
  const keys = createKmsStore(store);
  const cache = createKeyCache({ provider, keys });
  onTestFinished(async () => {
    await cache.close();
    await store.close();
    await provider.close();
  });
  const { keyId = "" } = await createKey(
    { provider, store, keys, now: () => new Date() },
    {
      ...{ alias: "", algorithm: "ML-DSA-65", usage: "", name: "", labels: {} },
      rotationPeriodSeconds: undefined,
    },
    systemCaller,
  );
  return { provider, keys, cache, keyId };
}

it("does not open a key that was evicted before its first use, because nothing would erase it", async () => {
  const { cache, keyId } = await openKey();
  const found = present(await cache.find(keyId));
  // As if another call had disabled it.
  cache.forget(keyId);
  await setImmediate();
  await expect(found.secretKey()).rejects.toMatchObject({ code: "CLOSED" });
  expect(await present(await cache.find(keyId)).secretKey()).toBeDefined();
});

it("opens a key whose secret half could not be read the first time", async () => {
  const { provider, keys, keyId } = await openKey();
  let isDown = true;
  const openSecret: typeof keys.openSecret = async (keyId) => {
    if (isDown) throw new StoreFailureError("UNAVAILABLE", new Error("the store is down"));
    return keys.openSecret(keyId);
  };
  const cache = createKeyCache({ provider, keys: { ...keys, openSecret } });
  onTestFinished(() => cache.close());
  const key = present(await cache.find(keyId));
  await expect(key.secretKey()).rejects.toThrow(StoreFailureError);
  isDown = false;
  expect(await key.secretKey()).toBeDefined();
});

it.each([
  ["one has failed", (): void => raise(new CryptoBusyError(1000))],
  ["its caller left", (leaving: AbortController) => leaving.abort(new Error("the caller left"))],
])("requests no more signatures for a batch after %s", async (_what, stop) => {
  const { provider, keys, cache, keyId } = await openKey();
  const leaving = new AbortController();
  let signatures = 0;
  const unbounded: Pick<CryptoProvider, "sign"> = {
    async sign() {
      signatures += 1;
      if (signatures === 3) stop(leaving);
      await setImmediate();
      return new Uint8Array();
    },
  };
  const queued = { ...provider, unbounded: unbounded as CryptoProvider };
  const data = Array.from({ length: 400 }, () => bytesOf("a"));
  const batch = signBatch(
    { provider: queued, keys, cache, users: undefined },
    create(BatchSignRequestSchema, { keyId, data }),
    { ...systemCaller, signal: leaving.signal },
    "binary",
  );
  await expect(batch).rejects.toThrow();
  for (let turn = 0; turn < 100; turn += 1) await setImmediate();
  // Signatures already requested from the queue.
  expect(signatures).toBeLessThan(20);
});

function raise(error: Error): never {
  throw error;
}
