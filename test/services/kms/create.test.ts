import { createPublicKey } from "node:crypto";
import { expect, it } from "vitest";
import { describeRefusal, failureOf, refusal } from "../../support/refusal.ts";
import { invalid } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms } from "./kms-server.ts";

/** Raw public key lengths of one algorithm of each family: FIPS 204, table 2; FIPS 205, table 2; FIPS 203, table 3. */
const publicKeyBytes = { "ML-DSA-87": 2592, "SLH-DSA-SHAKE-256f": 64, "ML-KEM-1024": 1568 };
const keyIdForm = /^key-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const slhDsa = ["SHA2", "SHAKE"].flatMap((hash) =>
  [128, 192, 256].flatMap((bits) => [`SLH-DSA-${hash}-${bits}s`, `SLH-DSA-${hash}-${bits}f`]),
);
const supported = [
  ...["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "ML-KEM-512", "ML-KEM-768", "ML-KEM-1024", "X-Wing"],
  ...["MLDSA44-Ed25519", "MLDSA65-Ed25519", "MLDSA65-ECDSA-P256", "MLDSA87-ECDSA-P384"],
  ...slhDsa,
];

describeKms("KmsService.CreateKey", (_start, shared) => {
  it.each(Object.entries(publicKeyBytes))(
    "creates a %s key with a raw public key of %i bytes, which its PEM contains too",
    async (algorithm, bytes) => {
      const { kms } = await shared();
      const key = await createKey(kms, { algorithm });
      const outside = createPublicKey(present(key.publicKeyPem));
      expect(key).toMatchObject({ algorithm, usage: algorithm.startsWith("ML-KEM") ? "KEM" : "SIGN" });
      expect(key.publicKey).toHaveLength(bytes);
      expect(outside.asymmetricKeyType).toBe(algorithm.toLowerCase());
      expect(new Uint8Array(outside.export({ format: "raw-public" }))).toEqual(key.publicKey);
    },
  );

  it("returns everything about the new key except its secret half and its JWK", async () => {
    const { kms } = await shared();
    const before = Date.now();
    const { status, result } = await kms.createKey({ alias: "till 7", algorithm: "ML-DSA-65" });
    const { createdAt, ...rest } = present(result);
    expect(status).toBe("success");
    expect(rest).toEqual({
      $typeName: "kms.KeyRecord",
      keyId: expect.stringMatching(keyIdForm),
      alias: "till 7",
      algorithm: "ML-DSA-65",
      usage: "SIGN",
      status: "ACTIVE",
      publicKey: expect.any(Uint8Array),
      publicKeyPem: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/),
      labels: {},
      origin: "GENERATED",
    });
    const createdMs = Number(present(createdAt).seconds) * 1000 + present(createdAt).nanos / 1e6;
    expect(createdMs).toBeGreaterThanOrEqual(before);
    expect(createdMs).toBeLessThanOrEqual(Date.now());
  });

  it.each([
    { usage: "", algorithm: "", made: "ML-DSA-65", madeFor: "SIGN" },
    { usage: "SIGN", algorithm: "", made: "ML-DSA-65", madeFor: "SIGN" },
    { usage: "KEM", algorithm: "", made: "ML-KEM-768", madeFor: "KEM" },
    { usage: "", algorithm: "ML-KEM-512", made: "ML-KEM-512", madeFor: "KEM" },
    { usage: "SIGN", algorithm: "ML-DSA-87", made: "ML-DSA-87", madeFor: "SIGN" },
  ])("creates $made for $madeFor with usage '$usage' and algorithm '$algorithm'", async (row) => {
    const { kms } = await shared();
    const { usage, algorithm, made, madeFor } = row;
    const { result } = await kms.createKey({ usage, algorithm });
    expect(result).toMatchObject({ algorithm: made, usage: madeFor });
  });

  it.each([
    { usage: "KEM", algorithm: "ML-DSA-65" },
    { usage: "SIGN", algorithm: "ML-KEM-768" },
    { usage: "BOTH", algorithm: "" },
    { usage: "sign", algorithm: "" },
  ])("rejects the usage $usage for the algorithm '$algorithm'", async (wanted) => {
    const { kms } = await shared();
    expect(await refusal(kms.createKey(wanted))).toEqual(invalid("usage"));
  });

  it.each(["ML-DSA-66", "ml-dsa-65", "ECDSA-P256", "RSA", " ML-DSA-65"])(
    "rejects the algorithm '%s' and lists the supported ones",
    async (algorithm) => {
      const { kms } = await shared();
      const failure = await failureOf(kms.createKey({ algorithm }));
      expect(describeRefusal(failure)).toEqual(invalid("algorithm"));
      expect(supported.filter((known) => !failure.rawMessage.includes(known))).toEqual([]);
    },
  );

  it("gives each key a unique ID, which is also the default alias", async () => {
    const { kms } = await shared();
    const [one, other] = [await createKey(kms), await createKey(kms)];
    expect(one.keyId).toMatch(keyIdForm);
    expect(one.alias).toBe(one.keyId);
    expect(other.keyId).not.toBe(one.keyId);
    expect(other.publicKey).not.toEqual(one.publicKey);
  });

  it.each([
    ["255 characters outside the basic multilingual plane", "🔑".repeat(255)],
    ["letters of all kinds", "Schlüssel — 鍵 'x'; drop table kms_keys; --"],
  ])("accepts an alias of %s and returns it unchanged", async (_what, alias) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms, { alias });
    expect((await kms.getKey({ keyId })).result?.alias).toBe(alias);
  });

  it.each([
    ["256 characters", "a".repeat(256)],
    ["a line end", "a\nb"],
    ["a null character", "a\u0000b"],
    ["a control character of Latin-1", "a\u0085b"],
  ])("rejects an alias with %s", async (_what, alias) => {
    const { kms } = await shared();
    expect(await refusal(kms.createKey({ alias }))).toEqual(invalid("alias"));
  });
});
