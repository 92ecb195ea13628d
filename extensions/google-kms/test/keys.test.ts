/** Keys and key rings over Google's interface: cases that the client tests do not cover. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import {
  ImportJob_ImportMethod as ImportMethod,
  CryptoKey_CryptoKeyPurpose as Purpose,
  CryptoKeyVersion_CryptoKeyVersionAlgorithm as VersionAlgorithm,
  CryptoKeyVersion_CryptoKeyVersionState as VersionState,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { present } from "../../../test/services/answers.ts";
import { readAudit } from "../../../test/services/kms/read-audit.ts";
import { describeRefusal, failureOf, refusal } from "../../../test/support/refusal.ts";
import { invalid, stateRefuses, usageRefuses, wrongKey } from "../../../test/support/refusals.ts";
import { wrapKeyFile } from "../../../test/support/wrap-key.ts";
import { describeGoogle, type GoogleKms } from "./google-server.ts";

const location = "projects/p/locations/global";
let count = 0;

/**
 * Creates a separate key ring.
 *
 * @returns its name
 */
async function createRing(google: GoogleKms): Promise<string> {
  count += 1;
  return (await google.createKeyRing({ parent: location, keyRingId: `ring-${count}` })).name;
}

const kem = {
  purpose: Purpose.KEY_ENCAPSULATION,
  versionTemplate: { algorithm: VersionAlgorithm.ML_KEM_768 },
};

async function createKey(google: GoogleKms, fields: object = {}): Promise<string> {
  const parent = await createRing(google);
  return (await google.createCryptoKey({ parent, cryptoKeyId: "key", cryptoKey: { ...kem, ...fields } }))
    .name;
}

describeGoogle("a key ring's lists", (shared) => {
  it("are refused if the ring does not exist, and empty for an empty ring", async () => {
    const { google } = await shared();
    const missing = { code: "NotFound", reason: "KEY_RING_NOT_FOUND" };
    const [none, parent] = [`${location}/keyRings/none`, await createRing(google)];
    for (const list of ["listCryptoKeys", "listImportJobs"] as const) {
      expect(await refusal(google[list]({ parent: none }))).toEqual(missing);
      expect((await google[list]({ parent })).totalSize).toBe(0);
    }
  });

  it("leave out kms names that are no Google names", async () => {
    const { google, kms } = await shared();
    const parent = await createRing(google);
    for (const id of ["signer", "a/b", "signer.old", "a".repeat(64)])
      await kms.createKey({ name: `${parent}/cryptoKeys/${id}` });
    const { cryptoKeys, totalSize } = await google.listCryptoKeys({ parent });
    expect(cryptoKeys.map(({ name }) => name)).toEqual([`${parent}/cryptoKeys/signer`]);
    expect(totalSize).toBe(1);
  });
});

describeGoogle("labels", (shared) => {
  it("accept letters and digits of all scripts", async () => {
    const { google } = await shared();
    const labels = { größe: "klein", 部門: "研究", "a٣_-": "٣" };
    const name = await createKey(google, { labels });
    expect((await google.getCryptoKey({ name })).labels).toEqual(labels);
  });

  it.each([
    ["an uppercase letter", { A: "" }],
    ["an uppercase value", { a: "B" }],
    ["an empty label", { "": "" }],
    ["64 letters", { ["ä".repeat(64)]: "" }],
    ["a value of 64 letters", { a: "研".repeat(64) }],
  ])("are rejected with %s", async (_what, labels) => {
    const { google } = await shared();
    expect(await refusal(createKey(google, { labels }))).toEqual(invalid("cryptoKey.labels"));
  });
});

describeGoogle("a new key", (shared) => {
  it.each([
    ["cryptoKeyBackend", { cryptoKeyBackend: "projects/p/locations/global/ekmConnections/e" }],
    ["keyAccessJustificationsPolicy", { keyAccessJustificationsPolicy: { allowedAccessReasons: [1] } }],
  ])("is rejected with %s, which would have no effect", async (field, fields) => {
    const { google } = await shared();
    expect(await refusal(createKey(google, fields))).toEqual(invalid(`cryptoKey.${field}`));
  });
});

describeGoogle("a new version", (shared) => {
  const { ENABLED, DISABLED, DESTROYED } = VersionState;
  const state = (name: string, state: VersionState) => ({ parent: name, cryptoKeyVersion: { state } });

  it("is ENABLED, or DISABLED if its creator says so", async () => {
    const { google } = await shared();
    const parent = await createKey(google);
    expect((await google.createCryptoKeyVersion({ parent })).state).toBe(ENABLED);
    expect((await google.createCryptoKeyVersion(state(parent, ENABLED))).state).toBe(ENABLED);
    const { name, state: given } = await google.createCryptoKeyVersion(state(parent, DISABLED));
    expect(given).toBe(DISABLED);
    expect(await google.getCryptoKeyVersion({ name })).toMatchObject({ state: DISABLED });
    const ciphertext = new Uint8Array(1088);
    expect(await refusal(google.decapsulate({ name, ciphertext }))).toEqual(stateRefuses);
  });

  it("can be enabled if it was created DISABLED, and the audit log has both steps", async () => {
    const { google, kms } = await shared();
    const parent = await createKey(google);
    const { name } = await google.createCryptoKeyVersion(state(parent, DISABLED));
    const enabled = { cryptoKeyVersion: { name, state: ENABLED }, updateMask: { paths: ["state"] } };
    expect((await google.updateCryptoKeyVersion(enabled)).state).toBe(ENABLED);
    expect((await google.decapsulate({ name, ciphertext: new Uint8Array(1088) })).sharedSecret).toHaveLength(
      32,
    );
    const { result } = await kms.getKey({ keyId: `name/${parent}/2` });
    const entries = await readAudit(kms, result?.keyId);
    const operations = entries.map(({ operation }) => operation);
    expect(operations.slice(0, 3)).toEqual(["CREATE", "DISABLE", "ENABLE"]);
  });

  it("that is created DISABLED does not become the primary version in kms", async () => {
    const { google, kms } = await shared();
    const parent = await createKey(google);
    const primary = async () => (await kms.getKey({ keyId: `name/${parent}` })).result?.version;
    await google.createCryptoKeyVersion(state(parent, DISABLED));
    expect(await primary()).toBe(1);
    await google.createCryptoKeyVersion({ parent });
    expect(await primary()).toBe(3);
  });

  it("leaves earlier versions ENABLED, which can be disabled; only RotateKey of kms makes one that cannot", async () => {
    const { google, kms } = await shared();
    const parent = await createKey(google);
    const disable = (version: number) =>
      google.updateCryptoKeyVersion({
        cryptoKeyVersion: { name: `${parent}/cryptoKeyVersions/${version}`, state: DISABLED },
        updateMask: { paths: ["state"] },
      });
    await google.createCryptoKeyVersion({ parent });
    await kms.rotateKey({ keyId: `name/${parent}` });
    expect((await disable(1)).state).toBe(DISABLED);
    expect(await refusal(disable(2))).toEqual(stateRefuses);
  });

  it("is rejected with a different state, and with options that would have no effect", async () => {
    const { google } = await shared();
    const parent = await createKey(google);
    expect(await refusal(google.createCryptoKeyVersion(state(parent, DESTROYED)))).toEqual(
      invalid("cryptoKeyVersion.state"),
    );
    const external = { parent, cryptoKeyVersion: { externalProtectionLevelOptions: {} } };
    expect(await refusal(google.createCryptoKeyVersion(external))).toEqual(
      invalid("cryptoKeyVersion.externalProtectionLevelOptions"),
    );
  });
});

/** Imports a secret key as the first version of a new import-only key. */
async function importVersion(
  google: GoogleKms,
  algorithm: VersionAlgorithm,
  file: Uint8Array,
  purpose: Purpose = Purpose.ASYMMETRIC_SIGN,
) {
  const parent = await createRing(google);
  const cryptoKey = { purpose, versionTemplate: { algorithm }, importOnly: true };
  const key = { parent, cryptoKeyId: "imported", skipInitialVersionCreation: true, cryptoKey };
  const { name } = await google.createCryptoKey(key);
  const importMethod = ImportMethod.HPKE_KEM_XWING_HKDF_SHA256_AES_256_GCM;
  const job = await google.createImportJob({ parent, importJobId: "job", importJob: { importMethod } });
  const publicKey = present(job.publicKey).data;
  const parameters = { publicKey, importToken: "", algorithm: "HPKE_XWING_HKDF_SHA256_AES_256_GCM" };
  const { wrappedKey } = await wrapKeyFile(parameters, file);
  await google.importCryptoKeyVersion({ parent: name, importJob: job.name, algorithm, wrappedKey });
  return name;
}

const pkcs8 = (key: KeyObject) => Uint8Array.from(key.export({ format: "der", type: "pkcs8" }));

describeGoogle("an imported key", (shared) => {
  const rejected = wrongKey("wrappedKey");

  it("that is import-only gets no generated version, from the key service's rotation either", async () => {
    const { google, kms } = await shared();
    const { privateKey } = generateKeyPairSync("ml-dsa-44");
    const name = await importVersion(google, VersionAlgorithm.PQ_SIGN_ML_DSA_44, pkcs8(privateKey));
    expect(await refusal(google.createCryptoKeyVersion({ parent: name }))).toEqual(invalid("parent"));
    expect(await refusal(kms.rotateKey({ keyId: `name/${name}` }))).toEqual(invalid("keyId"));
    expect((await google.listCryptoKeyVersions({ parent: name })).totalSize).toBe(1);
  });

  it("is rejected if it is stored with the usage ENCRYPT, whose data it would open", async () => {
    const { google, kms } = await shared();
    const seed = crypto.getRandomValues(new Uint8Array(32));
    const wrapped = await wrapKeyFile(await kms.getImportParameters({}), seed);
    await kms.importKey({ ...wrapped, algorithm: "X-Wing", usage: "ENCRYPT" });
    const call = importVersion(google, VersionAlgorithm.KEM_XWING, seed, Purpose.KEY_ENCAPSULATION);
    expect(await refusal(call)).toEqual(rejected);
  });

  it("is rejected if it is a component of a composite key", async () => {
    const { google, kms } = await shared();
    const [mlDsa, ecdsa] = [
      generateKeyPairSync("ml-dsa-65"),
      generateKeyPairSync("ec", { namedCurve: "P-256" }),
    ];
    const scalar = ecdsa.privateKey.export({ format: "raw-private" });
    const file = Buffer.concat([
      mlDsa.privateKey.export({ format: "raw-seed" }),
      Buffer.from("30310201010420", "hex"),
      scalar,
      Buffer.from("a00a06082a8648ce3d030107", "hex"),
    ]);
    const wrapped = await wrapKeyFile(await kms.getImportParameters({}), file);
    await kms.importKey({ ...wrapped, algorithm: "MLDSA65-ECDSA-P256-SHA512" });
    const half = importVersion(google, VersionAlgorithm.PQ_SIGN_ML_DSA_65, pkcs8(mlDsa.privateKey));
    expect(await refusal(half)).toEqual(rejected);
    const other = importVersion(google, VersionAlgorithm.EC_SIGN_P256_SHA256, pkcs8(ecdsa.privateKey));
    expect(await refusal(other)).toEqual(rejected);
  });
});

describeGoogle("a composite key in a key ring", (shared) => {
  it("has no algorithm of Google's, and does not sign", async () => {
    const { google, kms } = await shared();
    const ring = await createRing(google);
    await kms.createKey({ algorithm: "MLDSA44-Ed25519-SHA512", name: `${ring}/cryptoKeys/composite` });
    const name = `${ring}/cryptoKeys/composite/cryptoKeyVersions/1`;
    const version = await google.getCryptoKeyVersion({ name });
    expect(version.algorithm).toBe(VersionAlgorithm.CRYPTO_KEY_VERSION_ALGORITHM_UNSPECIFIED);
    const call = google.asymmetricSign({ name, data: new Uint8Array(1) });
    expect(await refusal(call)).toEqual(usageRefuses);
  });
});

describeGoogle("a version's destruction", (shared) => {
  it.each([
    ["30 days by default", undefined, 30],
    ["the number of days set on its key", { seconds: 172_800n }, 2],
  ])("is scheduled after %s", async (_what, destroyScheduledDuration, expected) => {
    const { google } = await shared();
    const key = await createKey(google, { destroyScheduledDuration });
    const { destroyTime } = await google.destroyCryptoKeyVersion({ name: `${key}/cryptoKeyVersions/1` });
    const days = (timestampMs(present(destroyTime)) - Date.now()) / 86_400_000;
    expect(Math.round(days * 10) / 10).toBe(expected);
  });
});

describeGoogle("an RSA-OAEP import job", (shared) => {
  it("is rejected in favour of methods that a quantum computer cannot break", async () => {
    const { google } = await shared();
    const importJob = { importMethod: ImportMethod.RSA_OAEP_4096_SHA256_AES_256 };
    const parent = await createRing(google);
    const failure = await failureOf(google.createImportJob({ parent, importJobId: "job", importJob }));
    expect(describeRefusal(failure)).toEqual(invalid("importJob.importMethod"));
    for (const kem of ["XWING", "ML_KEM_768", "ML_KEM_1024"])
      expect(failure.message).toContain(`HPKE_KEM_${kem}_HKDF_SHA256_AES_256_GCM`);
  });
});

describeGoogle("an error message", (shared) => {
  it.each<[string, (google: GoogleKms, version: string) => Promise<unknown>]>([
    [
      "a signature with a key that cannot sign",
      (google, name) => google.asymmetricSign({ name, data: new Uint8Array(1) }),
    ],
    [
      "restoring a version that is not scheduled for destruction",
      (google, name) => google.restoreCryptoKeyVersion({ name }),
    ],
    [
      "decapsulating with a disabled version",
      async (google, name) => {
        const cryptoKeyVersion = { name, state: VersionState.DISABLED };
        await google.updateCryptoKeyVersion({ cryptoKeyVersion, updateMask: { paths: ["state"] } });
        await google.decapsulate({ name, ciphertext: new Uint8Array(1088) });
      },
    ],
    [
      "the public key of a version scheduled for destruction",
      async (google, name) => {
        await google.destroyCryptoKeyVersion({ name });
        await google.getPublicKey({ name });
      },
    ],
    [
      "destroying a version twice",
      async (google, name) => {
        await google.destroyCryptoKeyVersion({ name });
        await google.destroyCryptoKeyVersion({ name });
      },
    ],
    ["an unknown version", (google, name) => google.getCryptoKeyVersion({ name: name.replace(/1$/, "19") })],
    [
      "an unknown key",
      (google, name) =>
        google.getCryptoKeyVersion({ name: name.replace("/cryptoKeys/key", "/cryptoKeys/no-key") }),
    ],
  ])("uses Google's resource names: %s", async (_what, call) => {
    const { google } = await shared();
    const key = await createKey(google);
    const failed = await failureOf(call(google, `${key}/cryptoKeyVersions/1`));
    const metadata = failed.findDetails(ErrorInfoSchema).map((info) => info.metadata);
    const words = JSON.stringify([failed.rawMessage, metadata]);
    expect(words).not.toMatch(/name\/projects|key-[0-9a-f]{8}/);
    expect(metadata[0]?.keyId ?? failed.rawMessage).toContain("projects/p/locations/global/keyRings/");
  });
});
