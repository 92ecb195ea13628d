import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { bytesOf, flipBit } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, usageRefuses } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, type KmsClient, verifiesOutside } from "./kms-server.ts";

/** Signature lengths: FIPS 204, table 2; FIPS 205, table 2, for sets that sign fast. */
const signatureBytes = {
  "ML-DSA-44": 2420,
  "ML-DSA-65": 3309,
  "ML-DSA-87": 4627,
  "SLH-DSA-SHA2-128f": 17088,
  "SLH-DSA-SHAKE-128f": 17088,
};
const data = bytesOf("pay 10 to Ada");
const context = bytesOf("till 7");
const longest = new Uint8Array(255).fill(1);

async function signData(kms: KmsClient, request: Parameters<KmsClient["sign"]>[0]): Promise<Uint8Array> {
  return present((await kms.sign(request)).result).signature;
}

/** FIPS 204, algorithm 7, line 6, as in the comment of SignRequest.mu. */
function computeMu(publicKey: Uint8Array, message: Uint8Array, binding: Uint8Array): Uint8Array {
  const shake256 = (...parts: Uint8Array[]) =>
    createHash("shake256", { outputLength: 64 }).update(Buffer.concat(parts)).digest();
  const tr = shake256(publicKey);
  return new Uint8Array(shake256(tr, Uint8Array.of(0, binding.length), binding, message));
}

describeKms("KmsService.Sign", (_start, shared) => {
  describe.each(Object.entries(signatureBytes))("with a %s key", (algorithm, bytes) => {
    it(`returns a signature of ${bytes} bytes that other software verifies`, async () => {
      const { kms } = await shared();
      const key = await createKey(kms, { algorithm });
      const { status, result } = await kms.sign({ keyId: key.keyId, data });
      expect(status).toBe("success");
      expect(result).toMatchObject({ keyId: key.keyId, algorithm });
      const { signature } = present(result);
      expect(signature).toHaveLength(bytes);
      expect(verifiesOutside(key, data, signature)).toBe(true);
      expect(verifiesOutside(key, data, signature, context)).toBe(false);
    });

    it.each([
      ["1 byte", Uint8Array.of(0)],
      ["255 bytes", longest],
    ])("binds the signature to a context of %s", async (_what, binding) => {
      const { kms } = await shared();
      const key = await createKey(kms, { algorithm });
      const signature = await signData(kms, { keyId: key.keyId, data, context: binding });
      expect(verifiesOutside(key, data, signature, binding)).toBe(true);
      expect(verifiesOutside(key, data, signature)).toBe(false);
    });
  });

  it.each(["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"])(
    "returns for a mu the plain signature over its message, with a %s key",
    async (algorithm) => {
      const { kms } = await shared();
      const key = await createKey(kms, { algorithm });
      for (const binding of [new Uint8Array(), context, longest]) {
        const mu = computeMu(present(key.publicKey), data, binding);
        const signature = await signData(kms, { keyId: key.keyId, mu });
        expect(verifiesOutside(key, data, signature, binding)).toBe(true);
        expect(verifiesOutside(key, bytesOf("another"), signature, binding)).toBe(false);
      }
    },
  );

  const mu = new Uint8Array(64).fill(1);
  const badRequests: [what: string, request: object, fields: string[]][] = [
    ["a context of 256 bytes", { data, context: new Uint8Array(256) }, ["context"]],
    ["no keyId", { keyId: "", data }, ["keyId"]],
    ["neither data nor mu", {}, ["data", "mu"]],
    ["a context and neither data nor mu", { context }, ["data", "mu"]],
    ["data and mu", { data, mu }, ["data", "mu"]],
    ["mu and a context", { mu, context }, ["context", "mu"]],
    ["a mu of 63 bytes", { mu: mu.subarray(1) }, ["mu"]],
    ["a mu of 65 bytes", { mu: new Uint8Array(65) }, ["mu"]],
  ];
  it.each(badRequests)("rejects %s", async (_what, request, fields) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.sign({ keyId, ...request }))).toEqual(invalid(...fields));
  });

  it("rejects a mu for an SLH-DSA key", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms, { algorithm: "SLH-DSA-SHA2-128f" });
    expect(await refusal(kms.sign({ keyId, mu }))).toEqual(usageRefuses);
  });
});

describeKms("KmsService.Verify", (_start, shared) => {
  describe.each(Object.entries(signatureBytes))("with a %s key", (algorithm, bytes) => {
    it("accepts only the key's own signatures", async () => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm });
      const other = await createKey(kms, { algorithm });
      const signature = await signData(kms, { keyId, data, context });
      const valid = async (request: object) =>
        (await kms.verify({ keyId, data, signature, context, ...request })).result?.valid;
      expect(await valid({})).toBe(true);
      expect(await valid({ signature: flipBit(signature, 0) })).toBe(false);
      expect(await valid({ signature: flipBit(signature, bytes - 1) })).toBe(false);
      expect(await valid({ data: flipBit(data, 3) })).toBe(false);
      expect(await valid({ data: Buffer.concat([data, Uint8Array.of(0)]) })).toBe(false);
      expect(await valid({ context: flipBit(context, 0) })).toBe(false);
      expect(await valid({ context: new Uint8Array() })).toBe(false);
      expect(await valid({ keyId: other.keyId })).toBe(false);
    });

    it.each([bytes - 1, bytes + 1, 1])("rejects a signature of %i bytes", async (length) => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm });
      const call = kms.verify({ keyId, data, signature: new Uint8Array(length).fill(1) });
      const lengthInvalid = { code: "InvalidArgument", reason: "LENGTH_INVALID", fields: ["signature"] };
      expect(await refusal(call)).toEqual(lengthInvalid);
    });
  });

  it("returns success with the key and its algorithm, valid or not", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const about = { $typeName: "kms.VerifyResult", keyId, algorithm: "ML-DSA-44" };
    const signature = await signData(kms, { keyId, data });
    const right = await kms.verify({ keyId, data, signature });
    expect([right.status, { ...right.result }]).toEqual(["success", { ...about, valid: true }]);
    const wrong = await kms.verify({ keyId, data: context, signature });
    expect([wrong.status, { ...wrong.result }]).toEqual(["success", { ...about, valid: false }]);
  });

  it("accepts signatures over mu, and signatures with a context of 255 bytes", async () => {
    const { kms } = await shared();
    const { keyId, publicKey } = await createKey(kms);
    const signature = await signData(kms, { keyId, mu: computeMu(present(publicKey), data, longest) });
    expect((await kms.verify({ keyId, data, signature, context: longest })).result?.valid).toBe(true);
  });

  it("rejects, with a replacement key, signatures by the old key", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const signature = await signData(kms, { keyId, data });
    const newKeyId = present((await kms.rotateKey({ keyId })).newKey).keyId;
    expect((await kms.verify({ keyId: newKeyId, data, signature })).result?.valid).toBe(false);
    expect((await kms.verify({ keyId, data, signature })).result?.valid).toBe(true);
  });

  it.each([
    ["no keyId", { keyId: "" }, "keyId"],
    ["no data", { data: new Uint8Array() }, "data"],
    ["no signature", { signature: new Uint8Array() }, "signature"],
    ["a context of 256 bytes", { context: new Uint8Array(256) }, "context"],
  ])("rejects %s", async (_what, change, field) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const request = { keyId, data, signature: new Uint8Array(2420), ...change };
    expect(await refusal(kms.verify(request))).toEqual(invalid(field));
  });
});
