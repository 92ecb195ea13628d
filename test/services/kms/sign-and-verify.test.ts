import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { bytesOf, flipBit } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, usageRefuses, wrongLength } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, type KmsClient, verifiesOutside } from "./kms-server.ts";

/** Signature lengths of one algorithm of each family: FIPS 204, table 2; FIPS 205, table 2. */
const signatureBytes = { "ML-DSA-44": 2420, "SLH-DSA-SHA2-128f": 17088 };
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
    it(`returns a signature of ${bytes} bytes that other software verifies, bound to its context`, async () => {
      const { kms } = await shared();
      const key = await createKey(kms, { algorithm });
      const { status, result } = await kms.sign({ keyId: key.keyId, data });
      expect(status).toBe("success");
      expect(result).toMatchObject({ keyId: key.keyId, algorithm });
      const { signature } = present(result);
      expect(signature).toHaveLength(bytes);
      expect(verifiesOutside(key, data, signature)).toBe(true);
      expect(verifiesOutside(key, data, signature, context)).toBe(false);
      const bound = await signData(kms, { keyId: key.keyId, data, context: longest });
      expect(verifiesOutside(key, data, bound, longest)).toBe(true);
      expect(verifiesOutside(key, data, bound)).toBe(false);
    });
  });

  it("returns for a mu the plain signature over its message", async () => {
    const { kms } = await shared();
    const key = await createKey(kms);
    for (const binding of [new Uint8Array(), longest]) {
      const mu = computeMu(present(key.publicKey), data, binding);
      const signature = await signData(kms, { keyId: key.keyId, mu });
      expect(verifiesOutside(key, data, signature, binding)).toBe(true);
      expect(verifiesOutside(key, bytesOf("another"), signature, binding)).toBe(false);
    }
  });

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
    it("accepts only the key's own signatures, of the right length", async () => {
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
      for (const length of [bytes - 1, bytes + 1, 1]) {
        const call = kms.verify({ keyId, data, signature: new Uint8Array(length).fill(1) });
        expect(await refusal(call)).toEqual(wrongLength("signature"));
      }
    });
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
