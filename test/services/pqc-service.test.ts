import { createPublicKey, decapsulate, generateKeyPairSync, verify } from "node:crypto";
import { Code } from "@connectrpc/connect";
import { ml_kem768_x25519 } from "@noble/post-quantum/hybrid.js";
import { ml_dsa87 } from "@noble/post-quantum/ml-dsa.js";
import { ml_kem512, ml_kem768, ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failureOf, refusal } from "../support/refusal.ts";
import { invalid, wrongKey, wrongLength } from "../support/refusals.ts";
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

/** FIPS 203, tables 2 and 3: name, encapsulation key, decapsulation key and ciphertext lengths, category. */
const mlKemSets = [
  ["ML-KEM-512", 800, 1632, 768, 1],
  ["ML-KEM-768", 1184, 2400, 1088, 3],
  ["ML-KEM-1024", 1568, 3168, 1568, 5],
] as const;

/** The same for draft-connolly-cfrg-xwing-kem-11, sections 1.2 and 5.1. */
const kemSets = [...mlKemSets, ["X-Wing", 1216, 32, 1120, 1]] as const;

const nobleKems = {
  "ML-KEM-512": ml_kem512,
  "ML-KEM-768": ml_kem768,
  "ML-KEM-1024": ml_kem1024,
  "X-Wing": ml_kem768_x25519,
};

describe("PqcService.SignData", () => {
  // One slow set is enough: the slow and the fast sets of a size differ in their speed alone.
  const sets = signatureSets.filter(([name]) => !/(?<!SHA2-128)s$/.test(name));
  describe.concurrent.each(sets)("with %s", (algorithm, publicKeyBytes, _secret, signatureBytes) => {
    it("returns a valid signature and key with the standard's sizes", {
      timeout: 180_000,
    }, async () => {
      const answer = await pqc.signData({ data, algorithm });
      expect(answer).toMatchObject({ status: "success", algorithm });
      expect(answer.publicKey).toHaveLength(publicKeyBytes);
      expect(answer.signature).toHaveLength(signatureBytes);
      // Through the PEM and Node's own parser, so that both are checked.
      expect(verify(null, data, createPublicKey(answer.publicKeyPem), answer.signature)).toBe(true);
      const { publicKey, signature } = answer;
      expect(await pqc.verifySignature({ data, algorithm, publicKey, signature })).toMatchObject({
        status: "success",
        valid: true,
      });
    });
  });

  it("signs with ML-DSA-65 by default", async () => {
    expect((await pqc.signData({ data })).algorithm).toBe("ML-DSA-65");
  });

  it("generates a new key pair for every request", async () => {
    const [one, other] = await Promise.all([pqc.signData({ data }), pqc.signData({ data })]);
    expect(one.publicKey).not.toEqual(other.publicKey);
    expect(one.signature).not.toEqual(other.signature);
  });

  it("rejects a request without data", async () => {
    expect(await refusal(pqc.signData({}))).toEqual(invalid("data"));
  });

  it.each(["RSA", "ml-dsa-65", "ML-KEM-768", "ECDSA-P256", "ML-DSA-65 ", "constructor"])(
    "rejects the algorithm %j and lists the supported ones",
    async (algorithm) => {
      const error = await failureOf(pqc.signData({ data, algorithm }));
      expect(error.code).toBe(Code.InvalidArgument);
      for (const [name] of signatureSets) expect(error.rawMessage).toContain(name);
      expect(await refusal(pqc.signData({ data, algorithm }))).toEqual(invalid("algorithm"));
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

  it("accepts a valid signature, with ML-DSA-65 by default", async () => {
    expect(await pqc.verifySignature(signed)).toMatchObject({ status: "success", valid: true });
  });

  it("accepts the public key as PEM", async () => {
    const { signature } = signed;
    expect((await pqc.verifySignature({ data, signature, publicKeyPem })).valid).toBe(true);
  });

  it("accepts a signature from another library", async () => {
    const { secretKey, publicKey } = ml_dsa87.keygen();
    const signature = ml_dsa87.sign(data, secretKey);
    const answer = await pqc.verifySignature({ data, signature, publicKey, algorithm: "ML-DSA-87" });
    expect(answer.valid).toBe(true);
  });

  it("returns success with valid = false for other data", async () => {
    const answer = await pqc.verifySignature({ ...signed, data: Buffer.from("hallo") });
    expect(answer).toMatchObject({ status: "success", valid: false });
  });

  it.each([0, 1654, 3308])("rejects a signature with byte %i changed", async (index) => {
    const { signature } = signed;
    const changed = Uint8Array.from(signature).with(index, (signature[index] ?? 0) ^ 1);
    expect((await pqc.verifySignature({ ...signed, signature: changed })).valid).toBe(false);
  });

  it("rejects a signature with a different public key", async () => {
    const { publicKey } = await pqc.signData({ data });
    expect((await pqc.verifySignature({ ...signed, publicKey })).valid).toBe(false);
  });

  const ownPem = () => generateKeyPairSync("ml-dsa-65").privateKey.export({ type: "pkcs8", format: "pem" });
  const pem = (publicKeyPem: string) => ({ publicKey: new Uint8Array(), publicKeyPem });
  it.each<[string, (other: Awaited<ReturnType<typeof pqc.signData>>) => object, object]>([
    ["a short signature", () => ({ signature: new Uint8Array(3308) }), wrongLength("signature")],
    ["a long signature", () => ({ signature: new Uint8Array(3310) }), wrongLength("signature")],
    ["a short public key", () => ({ publicKey: new Uint8Array(1951) }), wrongKey("publicKey")],
    ["a long public key", () => ({ publicKey: new Uint8Array(1953) }), wrongKey("publicKey")],
    ["a public key of a different algorithm", ({ publicKey }) => ({ publicKey }), wrongKey("publicKey")],
    ["PEM of a different algorithm", ({ publicKeyPem }) => pem(publicKeyPem), wrongKey("publicKeyPem")],
    ["no PEM", () => pem("hello"), wrongKey("publicKeyPem")],
    ["a private key", () => pem(String(ownPem())), wrongKey("publicKeyPem")],
    ["no data", () => ({ data: new Uint8Array() }), invalid("data")],
    ["no signature", () => ({ signature: new Uint8Array() }), invalid("signature")],
  ])("rejects %s", async (_what, changeOf, expected) => {
    const other = await pqc.signData({ data, algorithm: "ML-DSA-44" });
    expect(await refusal(pqc.verifySignature({ ...signed, ...changeOf(other) }))).toEqual(expected);
  });

  it("rejects a request with two public keys or none, and names both fields", async () => {
    const none = { data, signature: signed.signature };
    for (const request of [{ ...signed, publicKeyPem }, none]) {
      const error = await failureOf(pqc.verifySignature(request));
      expect(await refusal(pqc.verifySignature(request))).toMatchObject({
        code: "InvalidArgument",
        reason: "FIELD_INVALID",
      });
      expect(error.rawMessage).toMatch(/publicKey\b.*publicKeyPem/);
    }
  });

  it("rejects an unknown algorithm", async () => {
    expect(await refusal(pqc.verifySignature({ ...signed, algorithm: "DSA" }))).toEqual(invalid("algorithm"));
  });
});

describe("PqcService.ExchangeKeys", () => {
  describe.each(kemSets)("with %s", (algorithm, publicKeyBytes, secretKeyBytes, ciphertextBytes) => {
    const noble = nobleKems[algorithm];

    it("returns a key pair and a ciphertext that yields the same secret", async () => {
      const answer = await pqc.exchangeKeys({ algorithm });
      expect(answer).toMatchObject({ status: "success", algorithm, sharedSecretLength: 32 });
      expect(answer.publicKey).toHaveLength(publicKeyBytes);
      expect(answer.decapsulationKey).toHaveLength(secretKeyBytes);
      expect(answer.encapsulatedKey).toHaveLength(ciphertextBytes);
      expect(answer.sharedSecret).toHaveLength(32);
      const recovered = noble.decapsulate(
        answer.encapsulatedKey,
        answer.decapsulationKey ?? new Uint8Array(),
      );
      expect(Buffer.from(recovered)).toEqual(Buffer.from(answer.sharedSecret));
      const fromSeed = noble.keygen(Uint8Array.from(answer.decapsulationKeySeed ?? []));
      expect(Buffer.from(fromSeed.secretKey)).toEqual(Buffer.from(answer.decapsulationKey ?? []));
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

    it("rejects a key that fails the modulus check of FIPS 203, section 7.2", async () => {
      const publicKey = new Uint8Array(publicKeyBytes).fill(0xff);
      expect(await refusal(pqc.exchangeKeys({ algorithm, publicKey }))).toEqual(wrongKey("publicKey"));
    });

    it("rejects a key of an impossible length", async () => {
      const publicKey = new Uint8Array(publicKeyBytes + 1);
      expect(await refusal(pqc.exchangeKeys({ algorithm, publicKey }))).toEqual(wrongKey("publicKey"));
    });
  });

  it.each(mlKemSets)("encapsulates to the caller's PEM key, and returns the same PEM: %s", async (name) => {
    const { publicKey, privateKey } = makeNodePair(name);
    const publicKeyPem = publicKey.export({ type: "spki", format: "pem" }).toString();
    const answer = await pqc.exchangeKeys({ algorithm: name, publicKeyPem });
    expect(answer.publicKeyPem.trim()).toBe(publicKeyPem.trim());
    expect(answer.decapsulationKey).toBeUndefined();
    expect(decapsulate(privateKey, answer.encapsulatedKey)).toEqual(Buffer.from(answer.sharedSecret));
  });

  it("encapsulates to the PEM key from the X-Wing draft, and returns the same PEM", async () => {
    const { seed, publicKeyPem } = xWingDraft.example;
    const answer = await pqc.exchangeKeys({ algorithm: "X-Wing", publicKeyPem });
    expect(answer.publicKeyPem).toBe(publicKeyPem);
    expect(answer.decapsulationKey).toBeUndefined();
    const recovered = ml_kem768_x25519.decapsulate(answer.encapsulatedKey, Uint8Array.fromHex(seed));
    expect(Buffer.from(recovered)).toEqual(Buffer.from(answer.sharedSecret));
  });

  it("uses ML-KEM-768 by default", async () => {
    expect((await pqc.exchangeKeys({})).algorithm).toBe("ML-KEM-768");
  });

  it("generates a new pair and a new secret for every request", async () => {
    const [one, other] = await Promise.all([pqc.exchangeKeys({}), pqc.exchangeKeys({})]);
    expect(one.publicKey).not.toEqual(other.publicKey);
    expect(one.sharedSecret).not.toEqual(other.sharedSecret);
  });

  it("generates a new secret for every request with the same key", async () => {
    const { publicKey } = ml_kem768.keygen();
    const [one, other] = await Promise.all([
      pqc.exchangeKeys({ publicKey }),
      pqc.exchangeKeys({ publicKey }),
    ]);
    expect(one.sharedSecret).not.toEqual(other.sharedSecret);
  });

  it.each(["X25519", "ML-DSA-65", "ml-kem-768"])(
    "rejects the algorithm %j and lists the supported ones",
    async (algorithm) => {
      const error = await failureOf(pqc.exchangeKeys({ algorithm }));
      for (const [name] of kemSets) expect(error.rawMessage).toContain(name);
      expect(await refusal(pqc.exchangeKeys({ algorithm }))).toEqual(invalid("algorithm"));
    },
  );

  it("rejects two public keys", async () => {
    const { publicKey, publicKeyPem } = await pqc.exchangeKeys({});
    expect(await refusal(pqc.exchangeKeys({ publicKey, publicKeyPem }))).toMatchObject({
      code: "InvalidArgument",
      reason: "FIELD_INVALID",
    });
  });

  it("rejects the PEM of a signing key", async () => {
    const { publicKeyPem } = await pqc.signData({ data });
    expect(await refusal(pqc.exchangeKeys({ publicKeyPem }))).toEqual(wrongKey("publicKeyPem"));
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
      const { status, algorithms } = await pqc.getAlgorithmInfo({ category });
      expect(status).toBe("success");
      expect(algorithms.map(({ $typeName, ...info }) => info)).toEqual(expected);
    },
  );

  it.each(["kem", "HASH"])("rejects the category %j and lists the supported ones", async (category) => {
    const error = await failureOf(pqc.getAlgorithmInfo({ category }));
    for (const name of ["ALL", "SIGNATURE", "KEM"]) expect(error.rawMessage).toContain(name);
    expect(await refusal(pqc.getAlgorithmInfo({ category }))).toEqual(invalid("category"));
  });
});

describe("PqcService.GetHealth", () => {
  it("returns UP, and the protections of the gateway", async () => {
    expect(await pqc.getHealth({})).toMatchObject({
      status: "success",
      serviceStatus: "UP",
      transport: "X25519MLKEM768",
      authentication: "ML-DSA-65 JWT",
    });
  });
});

function makeNodePair(algorithm: (typeof mlKemSets)[number][0]) {
  switch (algorithm) {
    case "ML-KEM-512":
      return generateKeyPairSync("ml-kem-512");
    case "ML-KEM-768":
      return generateKeyPairSync("ml-kem-768");
    case "ML-KEM-1024":
      return generateKeyPairSync("ml-kem-1024");
  }
}
