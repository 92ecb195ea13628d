/** Creating, showing, exporting, rotating and destroying keys. */
import { createPublicKey, verify } from "node:crypto";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { calculateJwkThumbprint, importJWK } from "jose";
import { expect, it } from "vitest";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { compositeNames, kemNames, mlDsaNames, slhDsaNames } from "../../../src/crypto/algorithms.ts";
import { bytesOf } from "../../support/bytes.ts";
import { describeRefusal, failureOf, refusal } from "../../support/refusal.ts";
import { invalid } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, sign, withKey } from "./kms-server.ts";

/** Raw public key lengths of one algorithm of each family: FIPS 204, table 2; FIPS 205, table 2; FIPS 203, table 3. */
const publicKeyBytes = { "ML-DSA-87": 2592, "SLH-DSA-SHAKE-256f": 64, "ML-KEM-1024": 1568 };
const data = bytesOf("hello");
const supported = [...mlDsaNames, ...slhDsaNames, ...compositeNames, ...kemNames];

describeKms("KmsService.CreateKey", (_start, shared) => {
  it.each(Object.entries(publicKeyBytes))(
    "creates a %s key with a raw public key of %i bytes, which its PEM contains too, as GetKey shows",
    async (algorithm, bytes) => {
      const { kms } = await shared();
      const before = Date.now();
      const key = await createKey(kms, { algorithm });
      const outside = createPublicKey(present(key.publicKeyPem));
      const usage = algorithm.startsWith("ML-KEM") ? "KEM" : "SIGN";
      expect(key).toMatchObject({ algorithm, usage, status: "ACTIVE", origin: "GENERATED" });
      expect(timestampMs(present(key.createdAt))).toBeGreaterThanOrEqual(before);
      expect(timestampMs(present(key.createdAt))).toBeLessThanOrEqual(Date.now());
      expect(key.publicKey).toHaveLength(bytes);
      expect(outside.asymmetricKeyType).toBe(algorithm.toLowerCase());
      expect(new Uint8Array(outside.export({ format: "raw-public" }))).toEqual(key.publicKey);
      const { result } = await kms.getKey({ keyId: key.keyId });
      expect({ ...result, publicJwk: undefined }).toEqual({ ...key, publicJwk: undefined });
    },
  );

  it.each([
    ["", "", "ML-DSA-65", "SIGN"],
    ["SIGN", "", "ML-DSA-65", "SIGN"],
    ["KEM", "", "ML-KEM-768", "KEM"],
    ["ENCRYPT", "", "X-Wing", "ENCRYPT"],
    ["", "ML-KEM-512", "ML-KEM-512", "KEM"],
    ["SIGN", "ML-DSA-87", "ML-DSA-87", "SIGN"],
  ])("with usage '%s' and algorithm '%s' creates %s for %s", async (usage, algorithm, made, madeFor) => {
    const { kms } = await shared();
    expect(await createKey(kms, { usage, algorithm })).toMatchObject({ algorithm: made, usage: madeFor });
  });

  it.each([
    ["ML-DSA-66", 'did you mean "ML-DSA-65"? It must be in list '],
    ["mldsa65", 'did you mean "ML-DSA-65"? It must be in list '],
    ["RSA", "must be in list "],
    ["ECDSA-P256", ""],
    [" ML-DSA-65", ""],
  ])("rejects the algorithm '%s' and lists the supported ones", async (algorithm, advice) => {
    const { kms } = await shared();
    const failure = await failureOf(kms.createKey({ algorithm }));
    expect(describeRefusal(failure)).toEqual(invalid("algorithm"));
    expect(failure.rawMessage).toContain(`algorithm: ${advice}`);
    expect(supported.filter((known) => !failure.rawMessage.includes(known))).toEqual([]);
  });

  it("gives each key a unique ID, which is also the default alias", async () => {
    const { kms } = await shared();
    const [one, other] = [await createKey(kms), await createKey(kms)];
    expect(one.keyId).toMatch(/^key-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(one.alias).toBe(one.keyId);
    expect(other.keyId).not.toBe(one.keyId);
    expect(other.publicKey).not.toEqual(one.publicKey);
  });

  it.each(["🔑".repeat(255), "Schlüssel — 鍵 'x'; drop table kms_keys; --"])(
    "accepts the alias %s and returns it unchanged",
    async (alias) => {
      const { kms, keyId } = await withKey(shared(), { alias });
      expect((await kms.getKey({ keyId })).result?.alias).toBe(alias);
    },
  );
});

describeKms("KmsService.GetKey", (_start, shared) => {
  it("returns a JWK that jose accepts, with its RFC 7638 thumbprint as kid", async () => {
    const { kms } = await shared();
    const { keyId, publicKey } = await createKey(kms);
    const { $typeName: _, ...jwk } = present((await kms.getKey({ keyId })).result?.publicJwk);
    expect(jwk).toMatchObject({ kty: "AKP", alg: "ML-DSA-44" });
    expect(Buffer.from(present(jwk.pub), "base64url")).toEqual(Buffer.from(present(publicKey)));
    expect(jwk.kid).toBe(await calculateJwkThumbprint(jwk));
    expect(await importJWK(jwk)).toMatchObject({ type: "public" });
  });

  it("still describes a destroyed key", async () => {
    const { kms, key } = await withKey(shared());
    await kms.destroyKey({ keyId: key.keyId });
    const { result } = await kms.getKey({ keyId: key.keyId });
    expect(result).toMatchObject({ ...key, status: "DESTROYED" });
  });

  it.each(["nonsense", "' or 1=1 --", "%", "a".repeat(255), "🔑"])(
    "does not find the keyId %j",
    async (keyId) => {
      const { kms } = await shared();
      expect(await refusal(kms.getKey({ keyId }))).toMatchObject({ reason: "KEY_NOT_FOUND" });
    },
  );
});

describeKms("KmsService.ExportPublicKeys", (start) => {
  it("returns every version that can verify, as PEM and, for ML-DSA, as JWK", async () => {
    const { kms } = await start();
    const name = "release";
    const { keyId } = await createKey(kms, { name, labels: { team: "a" } });
    const signature = await sign(kms, { keyId, data });
    const { newKey } = await kms.rotateKey({ keyId });
    const slow = await createKey(kms, { algorithm: "SLH-DSA-SHA2-128f" });
    await createKey(kms, { algorithm: "ML-KEM-512" });
    for (const change of ["disableKey", "destroyKey"] as const)
      await kms[change]({ keyId: (await createKey(kms)).keyId });
    const all = await kms.exportPublicKeys({});
    expect(all.exported).toMatchObject([
      { keyId, name, version: 1, algorithm: "ML-DSA-44", status: "ROTATED" },
      { keyId: newKey?.keyId, name, version: 2, algorithm: "ML-DSA-44", status: "ACTIVE" },
      { keyId: slow.keyId, name: "", version: 0, algorithm: "SLH-DSA-SHA2-128f", status: "ACTIVE", kid: "" },
    ]);
    expect(all.keys.map(({ kid }) => kid)).toEqual(all.exported.slice(0, 2).map(({ kid }) => kid));
    for (const { $typeName: _, ...jwk } of all.keys) {
      expect(jwk).toMatchObject({ kty: "AKP", alg: "ML-DSA-44", use: "sig" });
      expect(await importJWK(jwk)).toMatchObject({ type: "public" });
      expect(jwk.kid).toBe(await calculateJwkThumbprint(jwk));
    }
    const blocks = all.pem.match(/-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----\n/g) ?? [];
    expect(blocks.join("")).toBe(all.pem);
    expect(blocks).toEqual(all.exported.map(({ publicKeyPem }) => publicKeyPem));
    const verifying = blocks.filter((pem) => verify(null, data, createPublicKey(pem), signature));
    expect(verifying).toEqual([blocks[0]]);
    for (const [filter, size] of [
      [{ name }, 2],
      [{ label: "team=a" }, 2],
      [{ algorithm: "SLH-DSA-SHA2-128f" }, 1],
    ] as const)
      expect((await kms.exportPublicKeys(filter)).totalSize).toBe(size);
    const first = await kms.exportPublicKeys({ pageSize: 2 });
    const pageToken = first.nextPageToken;
    const rest = await kms.exportPublicKeys({ pageSize: 2, pageToken });
    expect([...first.exported, ...rest.exported]).toEqual(all.exported);
    expect(rest.nextPageToken).toBe("");
    expect(await refusal(kms.exportPublicKeys({ name, pageToken }))).toEqual(invalid("pageToken"));
    expect(await refusal(kms.listKeys({ pageToken }))).toEqual(invalid("pageToken"));
  });
});

describeKms("KmsService.RotateKey", (_start, shared) => {
  it.each(["SLH-DSA-SHAKE-128f", "ML-KEM-768"])(
    "creates a new ACTIVE %s key in place of the old one, which becomes ROTATED",
    async (algorithm) => {
      const { kms } = await shared();
      const old = await createKey(kms, { algorithm, alias: "till" });
      const newKey = present((await kms.rotateKey({ keyId: old.keyId })).newKey);
      const { keyId, publicKey, createdAt } = newKey;
      expect(newKey).toMatchObject({
        ...{ alias: "till-rotated", algorithm, usage: old.usage, status: "ACTIVE" },
        publicKeyPem: expect.stringContaining("PUBLIC KEY"),
      });
      expect(keyId).not.toBe(old.keyId);
      expect(publicKey).not.toEqual(old.publicKey);
      expect(timestampMs(present(createdAt))).toBeGreaterThanOrEqual(timestampMs(present(old.createdAt)));
      expect((await kms.getKey({ keyId })).result).toMatchObject(newKey);
      expect((await kms.getKey({ keyId: old.keyId })).result).toMatchObject({ ...old, status: "ROTATED" });
    },
  );

  it("names the replacement of a rotated key: in GetKey, in lists, and when the old key is rejected", async () => {
    const { kms, keyId } = await withKey(shared());
    expect((await kms.getKey({ keyId })).result?.replacedBy).toBeUndefined();
    const { keyId: replacedBy } = present((await kms.rotateKey({ keyId })).newKey);
    expect((await kms.getKey({ keyId })).result).toMatchObject({ status: "ROTATED", replacedBy });
    const { keys } = await kms.listKeys({});
    expect(keys.find((key) => key.keyId === keyId)?.replacedBy).toBe(replacedBy);
    const failure = await failureOf(kms.sign({ keyId, data }));
    expect(failure.findDetails(ErrorInfoSchema)[0]?.metadata).toMatchObject({ replacedBy });
    expect((await kms.getKey({ keyId: replacedBy })).result?.replacedBy).toBeUndefined();
  });

  it("appends -rotated to the alias each time, until it has more than 255 characters", async () => {
    const { kms } = await shared();
    const aliases = [{ alias: "till" }, { alias: "a".repeat(255) }].map(async (fields) => {
      const { keyId } = await createKey(kms, fields);
      const second = present((await kms.rotateKey({ keyId })).newKey);
      return [second.alias, (await kms.rotateKey({ keyId: second.keyId })).newKey?.alias];
    });
    const long = `${"a".repeat(255)}-rotated`;
    expect(await Promise.all(aliases)).toEqual([
      ["till-rotated", "till-rotated-rotated"],
      [long, long],
    ]);
  });
});

describeKms("a refused call", (_start, shared) => {
  it("gives helpful advice: the replacement for new signatures only, and the public key for old ones", async () => {
    const { kms, keyId } = await withKey(shared());
    const signature = await sign(kms, { keyId, data });
    const messageOf = async (call: Promise<unknown>) => (await failureOf(call)).rawMessage;
    const publicKey = "verify with its public key, which GetKey returns";
    expect(await messageOf(kms.enableKey({ keyId }))).toBe(`key ${keyId} is already active`);
    await kms.disableKey({ keyId });
    expect(await messageOf(kms.disableKey({ keyId }))).toBe(`key ${keyId} is already disabled`);
    expect(await messageOf(kms.sign({ keyId, data }))).toMatch(/; enable it$/);
    expect(await messageOf(kms.verify({ keyId, data, signature }))).toContain(`; enable it, or ${publicKey}`);
    await kms.enableKey({ keyId });
    const { keyId: next } = present((await kms.rotateKey({ keyId })).newKey);
    expect(await messageOf(kms.sign({ keyId, data }))).toContain(`; use ${next}`);
    await kms.destroyKey({ keyId, afterSeconds: 86_400 });
    expect(await messageOf(kms.verify({ keyId, data, signature }))).toContain("; restore and enable it, or ");
    await kms.destroyKey({ keyId });
    const destroyed = `key ${keyId} is DESTROYED and does not allow VERIFY; ${publicKey}`;
    expect(await messageOf(kms.verify({ keyId, data, signature }))).toBe(destroyed);
    expect(await messageOf(kms.rotateKey({ keyId }))).toMatch(/ROTATE$/);
    expect(await messageOf(kms.restoreKey({ keyId }))).toMatch(/ its secret key cannot be restored$/);
  });
});

describeKms("KmsService.DestroyKey", (start) => {
  it("erases the sealed secret half of only this key, which GetHealth still counts", async () => {
    const { kms, store } = await start();
    const [key, other] = [await createKey(kms), await createKey(kms, { algorithm: "ML-KEM-512" })];
    await kms.destroyKey({ keyId: key.keyId });
    const sealed = await store.reader.selectFrom("sealed_secrets").select("identity").execute();
    const ofKeys = sealed.map(({ identity }) => identity).filter((identity) => identity.includes("key-"));
    expect(ofKeys).toEqual([`kms_keys/${other.keyId}/secret-key`]);
    await kms.rotateKey({ keyId: other.keyId });
    expect(await kms.getHealth({})).toMatchObject({ serviceStatus: "UP", keyCount: 3 });
  });
});
