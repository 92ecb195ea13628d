/** Import jobs, which stay in lists after they end. */
import { describe, expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { beginImport } from "../../../src/services/kms/import.ts";
import { createKeyCache } from "../../../src/services/kms/key-cache.ts";
import { createSchedule } from "../../../src/services/kms/schedule.ts";
import { createKmsStore } from "../../../src/services/kms/store.ts";
import { makeSqlitePlace } from "../../support/on-both.ts";

const method = "HPKE_XWING_HKDF_SHA256_AES_256_GCM";
const job = "projects/p/locations/l/keyRings/r/importJobs/j";
const taken = () => new Error("taken");

describe("an import job", () => {
  it("keeps its secret key for 24 hours, and its place in lists forever", async () => {
    let nowMs = Date.parse("2026-11-23T10:00:00.000Z");
    const now = () => new Date(nowMs);
    const place = await makeSqlitePlace();
    const store = await place.open();
    const provider = await createCryptoProvider("openssl");
    onTestFinished(() => provider.close());
    const keys = createKmsStore(store);
    const cache = createKeyCache({ provider, keys });
    onTestFinished(() => cache.close());
    const deps = { provider, store, keys, cache, users: undefined, now };
    const principal = { user: "ada", userId: "ada", owner: "ada" };
    const caller = { principal, signal: new AbortController().signal, idempotentCall: undefined };
    const { importId } = await beginImport(deps, { method, job: { name: job, taken }, ...caller });
    const { doDueWork } = createSchedule(deps);
    nowMs += 86_400_000 - 1;
    await doDueWork();
    expect(await keys.imports.openSeed(importId)).toHaveLength(32);
    nowMs += 1;
    await doDueWork();
    await doDueWork();
    expect(await keys.imports.openSeed(importId)).toBeUndefined();
    expect(await keys.imports.findJob("ada", job)).toMatchObject({ importId });
    expect(await keys.imports.due.count(nowMs)).toBe(0);
  });
});
