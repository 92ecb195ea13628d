/** Composite keys: each of their uses, and components that are in one key only. */
import { type AsymmetricKeyType, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import {
  algorithms,
  type CompositeAlgorithm,
  compositeDraft,
  compositeNames,
} from "../../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { findSharedComponent } from "../../../src/services/kms/components.ts";
import { beginImport } from "../../../src/services/kms/import.ts";
import { createKeyCache } from "../../../src/services/kms/key-cache.ts";
import { createSchedule } from "../../../src/services/kms/schedule.ts";
import { createKmsStore } from "../../../src/services/kms/store.ts";
import type { WriteTransaction } from "../../../src/store/write-transaction.ts";
import { bytesOf, flipBit } from "../../support/bytes.ts";
import { makeSqlitePlace } from "../../support/on-both.ts";
import { describeRefusal, failureOf, refusal } from "../../support/refusal.ts";
import { damaged, usageRefuses, wrongKey, wrongLength } from "../../support/refusals.ts";
import { streamOf } from "../../support/streams.ts";
import { systemCaller } from "../../support/system-caller.ts";
import { wrapKeyFile } from "../../support/wrap-key.ts";
import draft from "../../vectors/composite.json" with { type: "json" };
import { present } from "../answers.ts";
import {
  createClock,
  createKey,
  describeKms,
  describeKmsOnBoth,
  describeReplicas,
  importFile,
  type KmsClient,
  readDeeds,
  sign,
  startKmsServer,
  verifiesOutside,
  withKey,
} from "./kms-server.ts";
import { listPlan } from "./list-plan.ts";
import { chunk, header } from "./sign-parts.ts";

const data = bytesOf("hello");
const provider = await createCryptoProvider("openssl");
const vectorOf = (algorithm: string) =>
  present(draft.vectors.find((vector) => vector.algorithm === algorithm));
const pkcs8Of = (algorithm: string) => Uint8Array.fromBase64(vectorOf(algorithm).pkcs8);
const importVector = (kms: KmsClient, algorithm: string) =>
  importFile(kms, pkcs8Of(algorithm), { algorithm });

/** test/crypto/composite.test.ts verifies the signatures in the draft with the same provider. */
async function verifies(
  { algorithm, publicKey }: KeyRecord,
  message: Uint8Array,
  signature: Uint8Array,
  context = new Uint8Array(),
): Promise<boolean> {
  const key = provider.importPublicKey(algorithm as CompositeAlgorithm, { raw: present(publicKey) });
  return provider.verify(key, message, signature, { context });
}

describeKms("a composite key", ({ kms, shared }) => {
  it.each(compositeNames)("of %s signs data, batches and streams, and verifies", async (algorithm) => {
    const { kms, key, keyId } = await withKey(shared(), { algorithm });
    expect(key).toMatchObject({ algorithm, usage: "SIGN", status: "ACTIVE", draft: compositeDraft });
    const context = bytesOf("invoice");
    const signature = await sign(kms, { keyId, data, context });
    expect(await verifies(key, data, signature, context)).toBe(true);
    const { results } = await kms.batchSign({ keyId, data: [data, bytesOf("b")], context });
    expect(await verifies(key, bytesOf("b"), present(results[1]?.signature), context)).toBe(true);
    const pieces = streamOf(header(keyId, context), chunk(bytesOf("hel")), chunk(bytesOf("lo")));
    const streamed = present((await kms.signStream(pieces)).result).signature;
    expect(await verifies(key, data, streamed, context)).toBe(true);
    expect((await readDeeds(kms, keyId)).at(-1)).toBe("SIGN OK input=stream, bytes=5");
    const verdictOn = async (given: Uint8Array, context?: Uint8Array) =>
      (await kms.verify({ keyId, data, signature: given, ...(context && { context }) })).result?.valid;
    expect(await verdictOn(signature, context)).toBe(true);
    expect(await verdictOn(signature)).toBe(false);
    expect(await verdictOn(flipBit(signature, 9), context)).toBe(false);
  });

  it("verifies no signature of a length that its algorithm cannot have", async () => {
    const { kms, keyId } = await withKey(shared(), { algorithm: "MLDSA65-ECDSA-P256-SHA512" });
    for (const length of [3309, 3316, 3382]) {
      const signature = new Uint8Array(length);
      expect(await refusal(kms.verify({ keyId, data, signature }))).toEqual(wrongLength("signature"));
    }
    const { result } = await kms.verify({ keyId, data, signature: new Uint8Array(3317) });
    expect(result?.valid).toBe(false);
  });

  it("signs no mu, has no JSON Web Key, and shows the version of its draft in every list", async () => {
    const algorithm = "MLDSA44-Ed25519-SHA512";
    const { keyId } = await createKey(kms, { algorithm });
    const failure = await failureOf(kms.sign({ keyId, mu: new Uint8Array(64) }));
    expect(describeRefusal(failure)).toEqual(usageRefuses);
    expect(failure.rawMessage).toContain("mu requires an ML-DSA key; send the message, or stream it");
    expect((await kms.getKey({ keyId })).result?.publicJwk).toBeUndefined();
    const { keys } = await kms.listKeys({ algorithm });
    const { exported } = await kms.exportPublicKeys({ algorithm });
    expect([...keys, ...exported].map(({ draft }) => draft)).toEqual(
      Array(keys.length + exported.length).fill(compositeDraft),
    );
    expect(exported.length).toBeGreaterThan(0);
    expect((await createKey(kms)).draft).toBeUndefined();
  });

  it("rotates to a key of the same composite, and verifies its earlier signatures", async () => {
    const algorithm = "MLDSA65-Ed25519-SHA512";
    const { keyId } = await createKey(kms, { algorithm });
    const signature = await sign(kms, { keyId, data });
    const { newKey } = await kms.rotateKey({ keyId });
    expect(newKey).toMatchObject({ algorithm, draft: compositeDraft });
    expect((await kms.verify({ keyId, data, signature })).result?.valid).toBe(true);
  });
});

describe("components", () => {
  it.each([...compositeNames, "ML-DSA-87", "ECDSA-P256"] as const)(
    "are searched by index, however many keys there are: %s",
    async (algorithm) => {
      const place = await makeSqlitePlace();
      await (await place.open()).close();
      const publicKey = new Uint8Array(algorithms[algorithm].publicKeyBytes);
      const steps = await listPlan(place, (db) =>
        findSharedComponent({ db: db as WriteTransaction["db"] }, { algorithm, publicKey }),
      );
      expect(steps.length).toBeGreaterThan(0);
      for (const step of steps)
        expect(step).toMatch(/^SEARCH kms_keys USING INDEX kms_keys_by_(first|last)_bytes/);
    },
  );
});

describeKmsOnBoth("an imported composite key", ({ start }) => {
  it.each(compositeNames)("of %s has the public key of the draft's vector, and signs", async (algorithm) => {
    const { kms } = await start();
    const key = await importVector(kms, algorithm);
    expect(key).toMatchObject({ algorithm, origin: "IMPORTED", draft: compositeDraft });
    expect(key.publicKey?.toBase64()).toBe(vectorOf(algorithm).publicKey);
    expect(await verifies(key, data, await sign(kms, { keyId: key.keyId, data }))).toBe(true);
  });

  const p256 = "MLDSA65-ECDSA-P256-SHA512";
  /** The ML-DSA seed and the classical key of a vector. */
  const componentsOf = (algorithm: string) => {
    const pkcs8 = pkcs8Of(algorithm);
    const secret = pkcs8.subarray(pkcs8.indexOf(0x04, 15) + 2);
    return { mlDsa: secret.slice(0, 32), classical: secret.slice(32), whole: secret };
  };
  const refused = wrongKey("wrappedKey");

  it("shares its ML-DSA key with no ML-DSA key, whichever is stored first", async () => {
    const { kms } = await start({ auth: "token" });
    const { mlDsa } = componentsOf(p256);
    await importFile(kms, mlDsa, { algorithm: "ML-DSA-65" });
    const failure = await failureOf(importVector(kms, p256));
    expect(describeRefusal(failure)).toEqual(refused);
    expect(failure.rawMessage).toContain("contains a key whose ML-DSA-65 component is stored in another key");
    const other = "MLDSA44-Ed25519-SHA512";
    await importVector(kms, other);
    const plain = importFile(kms, componentsOf(other).mlDsa, { algorithm: "ML-DSA-44" });
    expect(await refusal(plain)).toEqual(refused);
    // The same seed gives an unrelated key in a different parameter set.
    await importFile(kms, componentsOf(other).mlDsa, { algorithm: "ML-DSA-65" });
  });

  it("shares neither component with a different composite", async () => {
    const { kms } = await start();
    await importVector(kms, p256);
    const sameMlDsa = Buffer.concat([componentsOf(p256).mlDsa, randomBytes(32)]);
    const other = "MLDSA65-Ed25519-SHA512";
    expect(await refusal(importFile(kms, sameMlDsa, { algorithm: other }))).toEqual(refused);
    const sameClassical = Buffer.concat([randomBytes(32), componentsOf(p256).classical]);
    expect(await refusal(importFile(kms, sameClassical, { algorithm: p256 }))).toEqual(refused);
    await importVector(kms, other);
    const { classical } = componentsOf(other);
    const sameEd25519 = Buffer.concat([randomBytes(32), classical]);
    const third = "MLDSA44-Ed25519-SHA512";
    expect(await refusal(importFile(kms, sameEd25519, { algorithm: third }))).toEqual(refused);
    await importFile(kms, Buffer.concat([randomBytes(32), randomBytes(32)]), { algorithm: third });
  });

  it("is stored once, and cannot return after its destruction", async () => {
    const { kms } = await start();
    const { keyId } = await importVector(kms, p256);
    expect(await refusal(importVector(kms, p256))).toEqual(refused);
    await kms.destroyKey({ keyId });
    expect(await refusal(importVector(kms, p256))).toEqual(refused);
  });
});

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

describeKms("an imported key", ({ kms }) => {
  it.each([
    ["ML-DSA-44", "ml-dsa-44", "PKCS#8", pkcs8, "HPKE_XWING_HKDF_SHA256_AES_256_GCM"],
    ["ML-DSA-65", "ml-dsa-65", "PEM", pem, "HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM"],
    ["ML-DSA-87", "ml-dsa-87", "seed", seed, "HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM"],
    ["SLH-DSA-SHA2-128f", "slh-dsa-sha2-128f", "raw form", raw, ""],
  ])("of algorithm %s in %3$s signs like the original key", async (algorithm, type, _form, write, method) => {
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
    const wrapped = await wrapNew(kms);
    const calls = Array.from({ length: 8 }, () => kms.importKey(wrapped));
    const refused = (await Promise.allSettled(calls)).filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(7);
    expect(await refusal(kms.importKey(wrapped))).toEqual(tokenInvalid);
  });
});

describeKms("a wrapped key", ({ kms, start }) => {
  it.each([
    ["changed in one bit", (wrapped: Uint8Array) => flipBit(wrapped)],
    ["of one byte", () => bytesOf("x")],
  ])("that is %s is rejected, and the token stays valid", async (_what, change) => {
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
    expect(await refusal(importFile(kms, makeFile(), { algorithm }))).toEqual(keyInvalid);
  });

  it("cannot take another key's name", async () => {
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
