/** Keys and key rings over Google's interface: cases that the client tests do not cover. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { present } from "../../../test/services/answers.ts";
import { readAudit } from "../../../test/services/kms/read-audit.ts";
import { describeRefusal, failureOf, refusal } from "../../../test/support/refusal.ts";
import { invalid, stateRefuses, usageRefuses, wrongKey } from "../../../test/support/refusals.ts";
import { wrapKeyFile } from "../../../test/support/wrap-key.ts";
import { ImportMethod, Purpose, VersionAlgorithm, VersionState } from "./enums.ts";
import {
  createJob,
  createKey,
  createLocation,
  createRing,
  describeGoogle,
  google,
  idsOf,
  kms,
} from "./google-server.ts";

const { ENABLED, DISABLED, DESTROYED } = VersionState;
/** Any bytes decapsulate to some secret (FIPS 203, section 7.3). */
const ciphertext = new Uint8Array(1088);

function setState(name: string, state: VersionState) {
  return google.updateCryptoKeyVersion({
    cryptoKeyVersion: { name, state },
    updateMask: { paths: ["state"] },
  });
}

describeGoogle("a key ring's lists", () => {
  it("are refused if the ring does not exist, and empty for an empty ring", async () => {
    const missing = { code: "NotFound", reason: "KEY_RING_NOT_FOUND" };
    const [none, parent] = [`${await createLocation()}/keyRings/none`, await createRing()];
    for (const list of ["listCryptoKeys", "listImportJobs"] as const) {
      expect(await refusal(google[list]({ parent: none }))).toEqual(missing);
      expect((await google[list]({ parent })).totalSize).toBe(0);
    }
  });

  it("leave out kms names that are no Google names", async () => {
    const parent = await createRing();
    for (const id of ["signer", "a/b", "signer.old", "a".repeat(64)])
      await kms.createKey({ name: `${parent}/cryptoKeys/${id}` });
    const { cryptoKeys, totalSize } = await google.listCryptoKeys({ parent });
    expect([idsOf(cryptoKeys), totalSize]).toEqual([["signer"], 1]);
  });
});

describeGoogle("a new key", () => {
  it("may have labels of letters and digits of all scripts", async () => {
    const labels = { größe: "klein", 部門: "研究", "a٣_-": "٣" };
    const name = await createKey({ labels });
    expect((await google.getCryptoKey({ name })).labels).toEqual(labels);
  });

  it.each([
    ["an uppercase label", { labels: { A: "" } }],
    ["an uppercase label's value", { labels: { a: "B" } }],
    ["an empty label", { labels: { "": "" } }],
    ["a label of 64 letters", { labels: { ["ä".repeat(64)]: "" } }],
    ["a label's value of 64 letters", { labels: { a: "研".repeat(64) } }],
    ["a backend", { cryptoKeyBackend: "projects/p/locations/l/ekmConnections/e" }],
    ["a policy", { keyAccessJustificationsPolicy: { allowedAccessReasons: [1] } }],
  ])("is rejected with %s", async (_what, fields) => {
    const [field] = Object.keys(fields);
    expect(await refusal(createKey(fields))).toEqual(invalid(`cryptoKey.${field}`));
  });
});

describeGoogle("a new version", () => {
  const disabled = { state: DISABLED };

  it("is ENABLED, or DISABLED if its creator says so; the audit log has both steps", async () => {
    const parent = await createKey();
    expect((await google.createCryptoKeyVersion({ parent })).state).toBe(ENABLED);
    const { name } = await google.createCryptoKeyVersion({ parent, cryptoKeyVersion: disabled });
    expect(await google.getCryptoKeyVersion({ name })).toMatchObject(disabled);
    expect(await refusal(google.decapsulate({ name, ciphertext }))).toEqual(stateRefuses);
    expect((await setState(name, ENABLED)).state).toBe(ENABLED);
    expect((await google.decapsulate({ name, ciphertext })).sharedSecret).toHaveLength(32);
    const { result } = await kms.getKey({ keyId: `name/${parent}/3` });
    const entries = await readAudit(kms, result?.keyId);
    const operations = entries.map(({ operation }) => operation);
    expect(operations.filter((one) => /CREATE|ABLE/.test(one))).toEqual(["CREATE", "DISABLE", "ENABLE"]);
  });

  it("that is created DISABLED does not become the primary version in kms", async () => {
    const parent = await createKey();
    const primary = async () => (await kms.getKey({ keyId: `name/${parent}` })).result?.version;
    await google.createCryptoKeyVersion({ parent, cryptoKeyVersion: disabled });
    expect(await primary()).toBe(1);
    await google.createCryptoKeyVersion({ parent, cryptoKeyVersion: { state: ENABLED } });
    expect(await primary()).toBe(3);
  });

  it("leaves earlier versions ENABLED, which can be disabled; only RotateKey of kms makes one that cannot", async () => {
    const parent = await createKey();
    await google.createCryptoKeyVersion({ parent });
    await kms.rotateKey({ keyId: `name/${parent}` });
    const disable = (version: number) => setState(`${parent}/cryptoKeyVersions/${version}`, DISABLED);
    expect((await disable(1)).state).toBe(DISABLED);
    expect(await refusal(disable(2))).toEqual(stateRefuses);
  });

  it.each([
    ["a different state", { state: DESTROYED }],
    ["options that would have no effect", { externalProtectionLevelOptions: {} }],
  ])("is rejected with %s", async (_what, cryptoKeyVersion) => {
    const call = google.createCryptoKeyVersion({ parent: await createKey(), cryptoKeyVersion });
    expect(await refusal(call)).toEqual(invalid(`cryptoKeyVersion.${Object.keys(cryptoKeyVersion)[0]}`));
  });
});

/** Imports a secret key as the first version of a new import-only key. */
async function importVersion(
  algorithm: VersionAlgorithm,
  file: Uint8Array,
  purpose: Purpose = Purpose.ASYMMETRIC_SIGN,
) {
  const parent = await createRing();
  const cryptoKey = { purpose, versionTemplate: { algorithm }, importOnly: true };
  const key = { parent, cryptoKeyId: "imported", skipInitialVersionCreation: true, cryptoKey };
  const { name } = await google.createCryptoKey(key);
  const job = await createJob(parent);
  const publicKey = present(job.publicKey).data;
  const parameters = { publicKey, importToken: "", algorithm: "HPKE_XWING_HKDF_SHA256_AES_256_GCM" };
  const { wrappedKey } = await wrapKeyFile(parameters, file);
  await google.importCryptoKeyVersion({ parent: name, importJob: job.name, algorithm, wrappedKey });
  return name;
}

const pkcs8 = (key: KeyObject) => Uint8Array.from(key.export({ format: "der", type: "pkcs8" }));

describeGoogle("an imported key", () => {
  const rejected = wrongKey("wrappedKey");

  it("that is import-only gets no generated version, from the key service's rotation either", async () => {
    const { privateKey } = generateKeyPairSync("ml-dsa-44");
    const name = await importVersion(VersionAlgorithm.PQ_SIGN_ML_DSA_44, pkcs8(privateKey));
    expect(await refusal(google.createCryptoKeyVersion({ parent: name }))).toEqual(invalid("parent"));
    expect(await refusal(kms.rotateKey({ keyId: `name/${name}` }))).toEqual(invalid("keyId"));
    expect((await google.listCryptoKeyVersions({ parent: name })).totalSize).toBe(1);
  });

  it("is rejected if it is stored with the usage ENCRYPT, whose data it would open", async () => {
    const seed = crypto.getRandomValues(new Uint8Array(32));
    const wrapped = await wrapKeyFile(await kms.getImportParameters({}), seed);
    await kms.importKey({ ...wrapped, algorithm: "X-Wing", usage: "ENCRYPT" });
    const call = importVersion(VersionAlgorithm.KEM_XWING, seed, Purpose.KEY_ENCAPSULATION);
    expect(await refusal(call)).toEqual(rejected);
  });

  it("is rejected if it is a component of a composite key", async () => {
    const mlDsa = generateKeyPairSync("ml-dsa-65").privateKey;
    const ecdsa = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
    const file = Buffer.concat([
      mlDsa.export({ format: "raw-seed" }),
      Buffer.from("30310201010420", "hex"),
      ecdsa.export({ format: "raw-private" }),
      Buffer.from("a00a06082a8648ce3d030107", "hex"),
    ]);
    const wrapped = await wrapKeyFile(await kms.getImportParameters({}), file);
    await kms.importKey({ ...wrapped, algorithm: "MLDSA65-ECDSA-P256-SHA512" });
    for (const [algorithm, key] of [
      [VersionAlgorithm.PQ_SIGN_ML_DSA_65, mlDsa],
      [VersionAlgorithm.EC_SIGN_P256_SHA256, ecdsa],
    ] as const)
      expect(await refusal(importVersion(algorithm, pkcs8(key)))).toEqual(rejected);
  });
});

describeGoogle("Google's interface", () => {
  it("has no algorithm for a composite key, which does not sign", async () => {
    const key = `${await createRing()}/cryptoKeys/composite`;
    await kms.createKey({ algorithm: "MLDSA44-Ed25519-SHA512", name: key });
    const name = `${key}/cryptoKeyVersions/1`;
    const version = await google.getCryptoKeyVersion({ name });
    expect(version.algorithm).toBe(VersionAlgorithm.CRYPTO_KEY_VERSION_ALGORITHM_UNSPECIFIED);
    const call = google.asymmetricSign({ name, data: new Uint8Array(1) });
    expect(await refusal(call)).toEqual(usageRefuses);
  });

  it.each([
    ["30 days by default", undefined, 30],
    ["the number of days set on its key", { seconds: 172_800n }, 2],
  ])("schedules a version's destruction after %s", async (_what, destroyScheduledDuration, expected) => {
    const key = await createKey({ destroyScheduledDuration });
    const { destroyTime } = await google.destroyCryptoKeyVersion({ name: `${key}/cryptoKeyVersions/1` });
    const days = (timestampMs(present(destroyTime)) - Date.now()) / 86_400_000;
    expect(Math.round(days * 10) / 10).toBe(expected);
  });

  it("rejects an RSA-OAEP import job in favour of methods that a quantum computer cannot break", async () => {
    const importJob = { importMethod: ImportMethod.RSA_OAEP_4096_SHA256_AES_256 };
    const parent = await createRing();
    const failure = await failureOf(google.createImportJob({ parent, importJobId: "job", importJob }));
    expect(describeRefusal(failure)).toEqual(invalid("importJob.importMethod"));
    for (const kem of ["XWING", "ML_KEM_768", "ML_KEM_1024"])
      expect(failure.message).toContain(`HPKE_KEM_${kem}_HKDF_SHA256_AES_256_GCM`);
  });

  const calls: Readonly<Record<string, (name: string) => Promise<unknown>>> = {
    "a signature with a key that cannot sign": (name) =>
      google.asymmetricSign({ name, data: new Uint8Array(1) }),
    "restoring a version that is not scheduled for destruction": (name) =>
      google.restoreCryptoKeyVersion({ name }),
    "decapsulating with a disabled version": async (name) => {
      await setState(name, DISABLED);
      await google.decapsulate({ name, ciphertext });
    },
    "the public key of a version scheduled for destruction": async (name) => {
      await google.destroyCryptoKeyVersion({ name });
      await google.getPublicKey({ name });
    },
    "destroying a version twice": async (name) => {
      await google.destroyCryptoKeyVersion({ name });
      await google.destroyCryptoKeyVersion({ name });
    },
    "an unknown version": (name) => google.getCryptoKeyVersion({ name: name.replace(/1$/, "19") }),
    "an unknown key": (name) =>
      google.getCryptoKeyVersion({ name: name.replace("/cryptoKeys/key", "/cryptoKeys/no-key") }),
  };
  it.each(Object.entries(calls))(
    "uses Google's resource names in error messages: %s",
    async (_what, call) => {
      const key = await createKey();
      const failed = await failureOf(call(`${key}/cryptoKeyVersions/1`));
      const metadata = failed.findDetails(ErrorInfoSchema).map((info) => info.metadata);
      const words = JSON.stringify([failed.rawMessage, metadata]);
      expect(words).not.toMatch(/name\/projects|key-[0-9a-f]{8}/);
      expect(metadata[0]?.keyId ?? failed.rawMessage).toMatch(
        /projects\/p\d+\/locations\/global\/keyRings\//,
      );
    },
  );
});
