import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { ml_kem768_x25519 } from "@noble/post-quantum/hybrid.js";
import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeRefusal, failureOf, refusal } from "../support/refusal.ts";
import { fieldInvalid, invalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import xWingDraft from "../vectors/x-wing.json" with { type: "json" };
import { type PqcServer, startPqcServer } from "./pqc-server.ts";

const data = Buffer.from("hello");

const dataDir = makeTemporaryDirectory(afterAll);
let server: PqcServer;
let pqc: PqcServer["pqc"];
beforeAll(async () => {
  server = await startPqcServer(dataDir);
  pqc = server.pqc;
});
afterAll(() => server.close());

/** FIPS 204, table 2; FIPS 205, table 2: name, public key, secret key and signature lengths, category. */
const signatureSets = [
  ["ML-DSA-44", 1312, 2560, 2420, 2],
  ["ML-DSA-65", 1952, 4032, 3309, 3],
  ["ML-DSA-87", 2592, 4896, 4627, 5],
  ["SLH-DSA-SHA2-128s", 32, 64, 7856, 1],
  ["SLH-DSA-SHA2-128f", 32, 64, 17088, 1],
  ["SLH-DSA-SHA2-192s", 48, 96, 16224, 3],
  ["SLH-DSA-SHA2-192f", 48, 96, 35664, 3],
  ["SLH-DSA-SHA2-256s", 64, 128, 29792, 5],
  ["SLH-DSA-SHA2-256f", 64, 128, 49856, 5],
  ["SLH-DSA-SHAKE-128s", 32, 64, 7856, 1],
  ["SLH-DSA-SHAKE-128f", 32, 64, 17088, 1],
  ["SLH-DSA-SHAKE-192s", 48, 96, 16224, 3],
  ["SLH-DSA-SHAKE-192f", 48, 96, 35664, 3],
  ["SLH-DSA-SHAKE-256s", 64, 128, 29792, 5],
  ["SLH-DSA-SHAKE-256f", 64, 128, 49856, 5],
] as const;

/**
 * FIPS 203, tables 2 and 3; draft-connolly-cfrg-xwing-kem-11, sections 1.2 and 5.1: name, encapsulation key,
 * decapsulation key and ciphertext lengths, category.
 */
const kemSets = [
  ["ML-KEM-512", 800, 1632, 768, 1],
  ["ML-KEM-768", 1184, 2400, 1088, 3],
  ["ML-KEM-1024", 1568, 3168, 1568, 5],
  ["X-Wing", 1216, 32, 1120, 1],
] as const;

const nobleKems = { "ML-KEM-768": ml_kem768, "X-Wing": ml_kem768_x25519 };

describe("PqcService.SignData", () => {
  it.each(["", "ML-DSA-65", "SLH-DSA-SHAKE-128f"])(
    "signs with a new key of %j, ML-DSA-65 by default",
    async (algorithm) => {
      const [one, other] = await Promise.all([pqc.signData({ data, algorithm }), pqc.signData({ data })]);
      const { publicKey, publicKeyPem, signature } = one;
      expect(one.algorithm).toBe(algorithm || "ML-DSA-65");
      expect(publicKey).not.toEqual(other.publicKey);
      // Through the PEM and Node's own parser, so that both are checked.
      expect(verify(null, data, createPublicKey(publicKeyPem), signature)).toBe(true);
      const answer = await pqc.verifySignature({ data, algorithm, publicKey, signature });
      expect(answer.valid).toBe(true);
    },
  );

  it.each(["RSA", "ml-dsa-65", "ML-KEM-768", "ECDSA-P256", "ML-DSA-65 ", "constructor"])(
    "rejects the algorithm %j and lists the supported ones",
    async (algorithm) => {
      const error = await failureOf(pqc.signData({ data, algorithm }));
      for (const [name] of signatureSets) expect(error.rawMessage).toContain(name);
      expect(describeRefusal(error)).toEqual(invalid("algorithm"));
    },
  );
});

describe("PqcService.VerifySignature", () => {
  let signed: { data: Uint8Array; signature: Uint8Array; publicKey: Uint8Array };
  let publicKeyPem: string;
  beforeAll(async () => {
    const answer = await pqc.signData({ data });
    signed = { data, signature: answer.signature, publicKey: answer.publicKey };
    publicKeyPem = answer.publicKeyPem;
  });

  it("accepts the public key as PEM, but no other data", async () => {
    const whole = { ...signed, ...pem(publicKeyPem) };
    expect(await pqc.verifySignature(whole)).toMatchObject({ valid: true });
    const changed = { ...whole, data: Buffer.from("hallo") };
    expect(await pqc.verifySignature(changed)).toMatchObject({ status: "success", valid: false });
  });

  const ownPem = () => generateKeyPairSync("ml-dsa-65").privateKey.export({ type: "pkcs8", format: "pem" });
  const pem = (publicKeyPem: string) => ({ publicKey: new Uint8Array(), publicKeyPem });
  it.each<[string, () => object, object]>([
    ["a short signature", () => ({ signature: new Uint8Array(3308) }), wrongLength("signature")],
    ["a long signature", () => ({ signature: new Uint8Array(3310) }), wrongLength("signature")],
    ["a short public key", () => ({ publicKey: new Uint8Array(1951) }), wrongKey("publicKey")],
    ["no PEM", () => pem("hello"), wrongKey("publicKeyPem")],
    ["a private key", () => pem(String(ownPem())), wrongKey("publicKeyPem")],
    ["an unknown algorithm", () => ({ algorithm: "DSA" }), invalid("algorithm")],
    ["two public keys", () => ({ publicKeyPem }), fieldInvalid],
    ["no public key", () => ({ publicKey: new Uint8Array() }), fieldInvalid],
  ])("rejects %s", async (_what, makeChange, expected) => {
    const call = pqc.verifySignature({ ...signed, ...makeChange() });
    expect(await refusal(call)).toMatchObject(expected);
  });
});

describe("PqcService.ExchangeKeys", () => {
  describe.each(["ML-KEM-768", "X-Wing"] as const)("with %s", (algorithm) => {
    const noble = nobleKems[algorithm];

    it("returns a key pair and a ciphertext that yields the same secret", async () => {
      const answer = await pqc.exchangeKeys({ algorithm });
      expect(answer).toMatchObject({ algorithm, sharedSecretLength: 32 });
      const { secretKey, publicKey } = noble.keygen(Uint8Array.from(answer.decapsulationKeySeed ?? []));
      expect(Buffer.from(answer.publicKey)).toEqual(Buffer.from(publicKey));
      expect(Buffer.from(answer.decapsulationKey ?? [])).toEqual(Buffer.from(secretKey));
      const recovered = noble.decapsulate(answer.encapsulatedKey, secretKey);
      expect(Buffer.from(recovered)).toEqual(Buffer.from(answer.sharedSecret));
    });

    it("encapsulates to the caller's raw key and returns no secret key", async () => {
      const { publicKey, secretKey } = noble.keygen();
      const answer = await pqc.exchangeKeys({ algorithm, publicKey });
      expect(answer.decapsulationKey).toBeUndefined();
      expect(answer.decapsulationKeySeed).toBeUndefined();
      expect(Buffer.from(answer.publicKey)).toEqual(Buffer.from(publicKey));
      const recovered = noble.decapsulate(answer.encapsulatedKey, secretKey);
      expect(Buffer.from(recovered)).toEqual(Buffer.from(answer.sharedSecret));
    });
  });

  it("encapsulates to the PEM key from the X-Wing draft, and returns the same PEM", async () => {
    const { seed, publicKeyPem } = xWingDraft.example;
    const answer = await pqc.exchangeKeys({ algorithm: "X-Wing", publicKeyPem });
    expect(answer.publicKeyPem).toBe(publicKeyPem);
    expect(answer.decapsulationKey).toBeUndefined();
    const recovered = ml_kem768_x25519.decapsulate(answer.encapsulatedKey, Uint8Array.fromHex(seed));
    expect(Buffer.from(recovered)).toEqual(Buffer.from(answer.sharedSecret));
  });

  it("uses ML-KEM-768 by default, with a new pair and a new secret for every request", async () => {
    const [one, other] = await Promise.all([pqc.exchangeKeys({}), pqc.exchangeKeys({})]);
    expect(one.algorithm).toBe("ML-KEM-768");
    expect(one.publicKey).not.toEqual(other.publicKey);
    expect(one.sharedSecret).not.toEqual(other.sharedSecret);
  });

  it.each(["X25519", "ML-DSA-65", "ml-kem-768"])(
    "rejects the algorithm %j and lists the supported ones",
    async (algorithm) => {
      const error = await failureOf(pqc.exchangeKeys({ algorithm }));
      for (const [name] of kemSets) expect(error.rawMessage).toContain(name);
      expect(describeRefusal(error)).toEqual(invalid("algorithm"));
    },
  );

  it("rejects two public keys, a key of an impossible length, and the PEM of a signing key", async () => {
    const { publicKey, publicKeyPem } = await pqc.exchangeKeys({});
    const { publicKeyPem: pemOfSigner } = await pqc.signData({ data });
    for (const [request, expected] of [
      [{ publicKey, publicKeyPem }, fieldInvalid],
      [{ publicKey: publicKey.subarray(1) }, wrongKey("publicKey")],
      [{ publicKeyPem: pemOfSigner }, wrongKey("publicKeyPem")],
    ] as const)
      expect(await refusal(pqc.exchangeKeys(request))).toMatchObject(expected);
  });
});

describe("PqcService.GetAlgorithmInfo", () => {
  const kems = kemSets.map(([name, publicKeyBytes, secretKeyBytes, ciphertextBytes, nistLevel]) => ({
    name,
    standard: name === "X-Wing" ? "draft-connolly-cfrg-xwing-kem" : "FIPS 203",
    nistLevel,
    category: "KEM",
    publicKeyBytes,
    secretKeyBytes,
    ciphertextBytes,
    sharedSecretBytes: 32,
  }));
  const signatures = signatureSets.map(
    ([name, publicKeyBytes, secretKeyBytes, signatureBytes, nistLevel]) => ({
      name,
      standard: name.startsWith("ML-DSA") ? "FIPS 204" : "FIPS 205",
      nistLevel,
      category: "SIGNATURE",
      publicKeyBytes,
      secretKeyBytes,
      signatureBytes,
    }),
  );

  it.each([
    ["", [...kems, ...signatures]],
    ["ALL", [...kems, ...signatures]],
    ["KEM", kems],
    ["SIGNATURE", signatures],
  ])(
    "lists the parameter sets of category %j with the standards' values, in order",
    async (category, expected) => {
      const { algorithms } = await pqc.getAlgorithmInfo({ category });
      expect(algorithms.map(({ $typeName, ...info }) => info)).toEqual(expected);
    },
  );

  it("rejects an unknown category and lists the supported ones", async () => {
    const error = await failureOf(pqc.getAlgorithmInfo({ category: "kem" }));
    for (const name of ["ALL", "SIGNATURE", "KEM"]) expect(error.rawMessage).toContain(name);
    expect(describeRefusal(error)).toEqual(invalid("category"));
  });
});
