import { createHash, createPublicKey, encapsulate } from "node:crypto";
import { expect, it } from "vitest";
import { bytesOf, flipBit } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, stateRefuses, usageRefuses, wrongLength } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, readDeeds, sign, verifiesOutside, withKey } from "./kms-server.ts";

/** Signature lengths of one algorithm of each family: FIPS 204, table 2; FIPS 205, table 2. */
const signatureBytes = Object.entries({ "ML-DSA-44": 2420, "SLH-DSA-SHA2-128f": 17088 });
/** Ciphertext lengths: FIPS 203, table 3. */
const ciphertextBytes = Object.entries({ "ML-KEM-512": 768, "ML-KEM-768": 1088, "ML-KEM-1024": 1568 });
const data = bytesOf("pay 10 to Ada");
const context = bytesOf("till 7");
const longest = new Uint8Array(255).fill(1);

/** FIPS 204, algorithm 7, line 6, as in the comment of SignRequest.mu. */
function computeMu(publicKey: Uint8Array, message: Uint8Array, binding: Uint8Array): Uint8Array {
  const shake256 = (...parts: Uint8Array[]) =>
    createHash("shake256", { outputLength: 64 }).update(Buffer.concat(parts)).digest();
  const tr = shake256(publicKey);
  return new Uint8Array(shake256(tr, Uint8Array.of(0, binding.length), binding, message));
}

describeKms("KmsService.Sign", (_start, shared) => {
  it.each(signatureBytes)(
    "with a %s key returns %i bytes that other software verifies, bound to their context",
    async (algorithm, bytes) => {
      const { kms, key, keyId } = await withKey(shared(), { algorithm });
      const { result } = await kms.sign({ keyId, data });
      const { signature } = present(result);
      expect(result).toMatchObject({ keyId, algorithm });
      expect(signature).toHaveLength(bytes);
      expect(verifiesOutside(key, data, signature)).toBe(true);
      expect(verifiesOutside(key, data, signature, context)).toBe(false);
      const bound = await sign(kms, { keyId, data, context: longest });
      expect(verifiesOutside(key, data, bound, longest)).toBe(true);
      expect(verifiesOutside(key, data, bound)).toBe(false);
    },
  );

  it("returns for a mu the plain signature over its message, but not for an SLH-DSA key", async () => {
    const { kms, key } = await withKey(shared());
    for (const binding of [new Uint8Array(), longest]) {
      const mu = computeMu(present(key.publicKey), data, binding);
      const signature = await sign(kms, { keyId: key.keyId, mu });
      expect(verifiesOutside(key, data, signature, binding)).toBe(true);
      expect(verifiesOutside(key, bytesOf("another"), signature, binding)).toBe(false);
    }
    const { keyId } = await createKey(kms, { algorithm: "SLH-DSA-SHA2-128f" });
    expect(await refusal(kms.sign({ keyId, mu: new Uint8Array(64) }))).toEqual(usageRefuses);
  });
});

describeKms("KmsService.Verify", (_start, shared) => {
  it.each(signatureBytes)(
    "with a %s key accepts only the key's own signatures, of the right length, %i",
    async (algorithm, bytes) => {
      const { kms, keyId } = await withKey(shared(), { algorithm });
      const other = await createKey(kms, { algorithm });
      const signature = await sign(kms, { keyId, data, context });
      const valid = async (request: object) =>
        (await kms.verify({ keyId, data, signature, context, ...request })).result?.valid;
      expect(await valid({})).toBe(true);
      const changes = [
        ...[{ signature: flipBit(signature, 0) }, { signature: flipBit(signature, bytes - 1) }],
        ...[{ data: flipBit(data, 3) }, { data: Uint8Array.of(...data, 0) }],
        ...[{ context: flipBit(context, 0) }, { context: new Uint8Array() }, { keyId: other.keyId }],
      ];
      for (const change of changes) expect(await valid(change)).toBe(false);
      for (const length of [bytes - 1, bytes + 1, 1])
        expect(await refusal(valid({ signature: new Uint8Array(length).fill(1) }))).toEqual(
          wrongLength("signature"),
        );
      expect(await readDeeds(kms, keyId)).toContain("VERIFY REFUSED reason=LENGTH_INVALID");
    },
  );
});

describeKms("KmsService.Encapsulate and Decapsulate", (_start, shared) => {
  it.each(ciphertextBytes)(
    "agree on a 32-byte secret with a %s key, in %i bytes",
    async (algorithm, bytes) => {
      const { kms, keyId } = await withKey(shared(), { algorithm });
      const sent = present((await kms.encapsulate({ keyId })).result);
      const { ciphertext, sharedSecret } = sent;
      expect([ciphertext.length, sharedSecret.length]).toEqual([bytes, 32]);
      expect(sent).toMatchObject({ keyId, algorithm });
      const { result } = await kms.decapsulate({ keyId, ciphertext });
      expect(result).toMatchObject({ keyId, algorithm, sharedSecret });
      for (const length of [bytes - 1, bytes + 1, 1]) {
        const wrong = kms.decapsulate({ keyId, ciphertext: new Uint8Array(length).fill(1) });
        expect(await refusal(wrong)).toEqual(wrongLength("ciphertext"));
      }
      expect(await readDeeds(kms, keyId)).toContain("DECAPSULATE REFUSED reason=LENGTH_INVALID");
    },
  );

  it("agree with an outsider who has only the public key, even after a rotation", async () => {
    const { kms } = await shared();
    const { keyId, publicKeyPem } = await createKey(kms, { algorithm: "ML-KEM-512" });
    const { ciphertext, sharedKey } = encapsulate(createPublicKey(present(publicKeyPem)));
    const newKeyId = present((await kms.rotateKey({ keyId })).newKey).keyId;
    const old = await kms.decapsulate({ keyId, ciphertext });
    const fresh = await kms.decapsulate({ keyId: newKeyId, ciphertext });
    expect(old.result?.sharedSecret).toEqual(new Uint8Array(sharedKey));
    expect(fresh.result?.sharedSecret).not.toEqual(new Uint8Array(sharedKey));
  });
});

const messages = (count: number) => Array.from({ length: count }, (_, i) => bytesOf(`message ${i}`));

describeKms("KmsService.BatchSign", (_start, shared) => {
  it.each(["ML-DSA-44", "SLH-DSA-SHA2-128f"])(
    "signs each message in order and bound to the context, with a %s key",
    async (algorithm) => {
      const { kms, key } = await withKey(shared(), { algorithm });
      const data = messages(10);
      const { results, ...about } = await kms.batchSign({ keyId: key.keyId, data, context: longest });
      expect(about).toMatchObject({ keyId: key.keyId, algorithm });
      const verified = results.map(({ signature, error }, i) => [
        error,
        verifiesOutside(key, present(data[i]), present(signature), longest),
        verifiesOutside(key, present(data[i]), present(signature)),
        verifiesOutside(key, bytesOf("message"), present(signature), longest),
      ]);
      expect(verified).toEqual(Array(10).fill([undefined, true, false, false]));
    },
  );

  it("rejects the whole batch if one of its messages is empty, with one audit entry", async () => {
    const { kms, keyId } = await withKey(shared());
    const data = [bytesOf("a"), new Uint8Array(), bytesOf("c")];
    expect(await refusal(kms.batchSign({ keyId, data }))).toEqual(invalid("data[1]"));
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=FIELD_INVALID"]);
    // For callers who may not use the key, it does not exist.
    expect(await refusal(kms.batchSign({ keyId: "key-of-nobody", data }))).toMatchObject({
      reason: "KEY_NOT_FOUND",
    });
  });

  it("signs 1,000 messages, each with its own audit entry", async () => {
    const { kms, key } = await withKey(shared());
    const data = messages(1000);
    const { results } = await kms.batchSign({ keyId: key.keyId, data });
    const isValid = (signature: Uint8Array | undefined, i: number) =>
      verifiesOutside(key, present(data[i]), present(signature));
    expect(results.filter(({ signature }, i) => isValid(signature, i))).toHaveLength(1000);
    const expected = data.map((_, i) => `SIGN OK input=data, batchItem=${i + 1}/1000`);
    expect((await readDeeds(kms, key.keyId)).slice(1)).toEqual(expected);
  });

  it.each(["rotateKey", "destroyKey"] as const)(
    "rejects the whole batch if another caller manages to call %s in the meantime",
    async (change) => {
      const { kms, keyId } = await withKey(shared(), { algorithm: "ML-DSA-87" });
      const batch = refusal(kms.batchSign({ keyId, data: messages(900) }));
      await kms[change]({ keyId });
      expect(await batch).toEqual(stateRefuses);
      const signed = (await readDeeds(kms, keyId)).filter((deed) => deed.startsWith("SIGN"));
      expect(signed).toEqual(["SIGN REFUSED reason=KEY_STATE_INVALID"]);
    },
  );
});
