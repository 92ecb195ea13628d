/** Imports of keys that were created by other programs. */
import { type AsymmetricKeyType, generateKeyPairSync, type KeyObject } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { beginImport } from "../../../src/services/kms/import.ts";
import { createKeyCache } from "../../../src/services/kms/key-cache.ts";
import { createSchedule } from "../../../src/services/kms/schedule.ts";
import { createKmsStore } from "../../../src/services/kms/store.ts";
import { bytesOf, flipBit } from "../../support/bytes.ts";
import { makeSqlitePlace } from "../../support/on-both.ts";
import { refusal } from "../../support/refusal.ts";
import { damaged, wrongKey } from "../../support/refusals.ts";
import { systemCaller } from "../../support/system-caller.ts";
import { wrapKeyFile } from "../../support/wrap-key.ts";
import { present } from "../answers.ts";
import {
  createClock,
  createKey,
  describeKms,
  describeReplicas,
  importFile,
  type KmsClient,
  readDeeds,
  sign,
  startKmsServer,
  verifiesOutside,
} from "./kms-server.ts";

const data = bytesOf("hello");
const tokenInvalid = { code: "NotFound", reason: "IMPORT_TOKEN_INVALID" };
const keyInvalid = wrongKey("wrappedKey");

/** Generates a key pair with node:crypto. */
function makePair(type: string): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  return generateKeyPairSync(type as "ed25519" & AsymmetricKeyType);
}

const pkcs8 = (key: KeyObject): Uint8Array => new Uint8Array(key.export({ format: "der", type: "pkcs8" }));
const pem = (key: KeyObject): Uint8Array => bytesOf(String(key.export({ format: "pem", type: "pkcs8" })));
const seed = (key: KeyObject): Uint8Array => new Uint8Array(key.export({ format: "raw-seed" } as never));
const raw = (key: KeyObject): Uint8Array => new Uint8Array(key.export({ format: "raw-private" } as never));
const rawPublic = (key: KeyObject): Uint8Array =>
  new Uint8Array(key.export({ format: "raw-public" } as never));

const algorithm = "ML-DSA-44";
const newFile = () => pkcs8(makePair("ml-dsa-44").privateKey);

/** Wraps a new ML-DSA-44 key. */
async function wrapNew(kms: KmsClient) {
  return { ...(await wrapKeyFile(await kms.getImportParameters({}), newFile())), algorithm };
}

describeKms("an imported key", (_start, shared) => {
  it.each([
    ["ML-DSA-44", "ml-dsa-44", "PKCS#8", pkcs8, "HPKE_XWING_HKDF_SHA256_AES_256_GCM"],
    ["ML-DSA-65", "ml-dsa-65", "PEM", pem, "HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM"],
    ["ML-DSA-87", "ml-dsa-87", "seed", seed, "HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM"],
    ["SLH-DSA-SHA2-128f", "slh-dsa-sha2-128f", "raw form", raw, ""],
  ])("of algorithm %s in %3$s signs like the original key", async (algorithm, type, _form, write, method) => {
    const { kms } = await shared();
    const { privateKey, publicKey } = makePair(type);
    const name = `imported/${type}`;
    const fields = { algorithm, name, labels: { from: "node" } };
    const key = await importFile(kms, write(privateKey), fields, method);
    expect(key).toMatchObject({ ...fields, version: 1, origin: "IMPORTED" });
    expect(key.publicKey).toEqual(rawPublic(publicKey));
    const signature = await sign(kms, { keyId: `name/${name}`, data });
    expect(verifiesOutside(key, data, signature)).toBe(true);
    const entry = `IMPORT OK algorithm=${algorithm}, usage=SIGN, name=${name}, version=1`;
    expect((await readDeeds(kms, key.keyId))[0]).toBe(entry);
    const { newKey } = await kms.rotateKey({ keyId: key.keyId });
    expect(newKey).toMatchObject({ version: 2, origin: "GENERATED" });
  });

  it("uses up its token, even when callers race", async () => {
    const { kms } = await shared();
    const wrapped = await wrapNew(kms);
    const calls = Array.from({ length: 8 }, () => kms.importKey(wrapped));
    const refused = (await Promise.allSettled(calls)).filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(7);
    expect(await refusal(kms.importKey(wrapped))).toEqual(tokenInvalid);
  });
});

describeKms("a wrapped key", (start, shared) => {
  it.each([
    ["changed in one bit", (wrapped: Uint8Array) => flipBit(wrapped)],
    ["of one byte", () => bytesOf("x")],
  ])("that is %s is rejected, and the token stays valid", async (_what, change) => {
    const { kms } = await shared();
    const wrapped = await wrapNew(kms);
    const broken = { ...wrapped, wrappedKey: change(wrapped.wrappedKey) };
    expect(await refusal(kms.importKey(broken))).toEqual(keyInvalid);
    expect((await kms.importKey(wrapped)).result?.origin).toBe("IMPORTED");
  });

  it("is rejected if its token's secret key was tampered with", async () => {
    const { kms, tamper } = await start();
    const wrapped = await wrapNew(kms);
    await tamper((db) =>
      db
        .updateTable("sealed_secrets")
        .set({ ciphertext: new Uint8Array(60) })
        .where("identity", "like", `%${wrapped.importToken}%`)
        .execute(),
    );
    expect(await refusal(kms.importKey(wrapped))).toEqual(damaged);
  });

  it.each([
    ["another algorithm", () => pkcs8(makePair("ml-dsa-65").privateKey)],
    ["an Ed25519 key", () => pkcs8(makePair("ed25519").privateKey)],
    ["nothing", () => new Uint8Array()],
  ])("that contains %s is rejected", async (_what, makeFile) => {
    const { kms } = await shared();
    expect(await refusal(importFile(kms, makeFile(), { algorithm }))).toEqual(keyInvalid);
  });

  it("cannot take another key's name", async () => {
    const { kms } = await shared();
    await createKey(kms, { name: "taken" });
    const imported = importFile(kms, newFile(), { algorithm, name: "taken" });
    expect(await refusal(imported)).toEqual({ code: "AlreadyExists", reason: "NAME_TAKEN" });
  });

  it("is rejected after 24 hours, when the server has erased the token's secret key", async () => {
    const { now, pass } = createClock();
    const server = await start({ now });
    const { kms } = server;
    const { expiresAt } = await kms.getImportParameters({});
    expect(expiresAt).toMatchObject({ seconds: BigInt(now().getTime() / 1000 + 86_400) });
    const wrapped = await wrapNew(kms);
    pass(86_400);
    expect(await refusal(kms.importKey(wrapped))).toEqual(tokenInvalid);
    await server.doDueWork();
    const secret = await server.store.readSecret(`kms_imports/${wrapped.importToken}/secret-key`);
    expect(secret).toBeUndefined();
  });

  it.each(["import-none", "key-1"])("with the token %j is rejected", async (importToken) => {
    const { kms } = await shared();
    expect(await refusal(kms.importKey({ importToken, wrappedKey: data, algorithm }))).toEqual(tokenInvalid);
  });
});

describeReplicas("an import token on two servers", (startTwo) => {
  it("from one server works on the other", async () => {
    const [one, other] = await startTwo();
    const wrapped = await wrapNew(one.kms);
    const { keyId } = present((await other.kms.importKey(wrapped)).result);
    expect((await one.kms.sign({ keyId, data })).result?.keyId).toBe(keyId);
    const third = await startKmsServer({ database: one.database });
    expect((await third.kms.sign({ keyId, data })).result?.keyId).toBe(keyId);
  });
});

describe("an import job", () => {
  it("keeps its secret key for 24 hours, and its place in lists forever", async () => {
    const { now, pass } = createClock();
    const store = await (await makeSqlitePlace()).open();
    const provider = await createCryptoProvider("openssl");
    onTestFinished(() => provider.close());
    const keys = createKmsStore(store);
    const cache = createKeyCache({ provider, keys });
    onTestFinished(() => cache.close());
    const deps = { provider, store, keys, cache, users: undefined, now };
    const method = "HPKE_XWING_HKDF_SHA256_AES_256_GCM";
    const job = { name: "projects/p/locations/l/keyRings/r/importJobs/j", taken: () => new Error("taken") };
    const { importId } = await beginImport(deps, { method, job, ...systemCaller });
    const { doDueWork } = createSchedule(deps);
    pass(86_399);
    await doDueWork();
    expect(await keys.imports.openSeed(importId)).toHaveLength(32);
    pass(1);
    await doDueWork();
    await doDueWork();
    expect(await keys.imports.openSeed(importId)).toBeUndefined();
    expect(await keys.imports.findJob(systemCaller.principal.userId, job.name)).toMatchObject({ importId });
    expect(await keys.imports.due.count(now().getTime())).toBe(0);
  });
});
