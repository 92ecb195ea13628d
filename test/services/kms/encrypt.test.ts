/** Encryption with stored keys. */
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_MLKEM768_X25519 } from "hpke";
import { describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { encryptData } from "../../../src/crypto/key-encryption.ts";
import { bytesOf, flipBit } from "../../support/bytes.ts";
import { describeRefusal, failureOf, refusal } from "../../support/refusal.ts";
import { invalid, stateRefuses, usageRefuses, wrongKey } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import {
  createKey,
  describeKms,
  importFile,
  type KmsClient,
  type KmsServer,
  readDeeds,
  withKey,
} from "./kms-server.ts";

/** Bytes of enc: draft-ietf-hpke-pq-04, section 8. */
const encBytes = { "X-Wing": 1120, "ML-KEM-768": 1088, "ML-KEM-1024": 1568 };
const headBytes = 17;
const tagBytes = 16;
const plaintext = bytesOf("a database password");
const associatedData = bytesOf("row 17");
const failed = { code: "InvalidArgument", reason: "DECRYPTION_FAILED" };

function uuidOf(keyId: string): string {
  return keyId.slice("key-".length).replaceAll("-", "");
}

/** Creates a key for encryption; X-Wing by default. */
const createKeyFor = (kms: KmsClient, fields: object = {}) =>
  createKey(kms, { algorithm: "X-Wing", usage: "ENCRYPT", ...fields });

const withKeyFor = (starting: Promise<KmsServer>, fields: object = {}) =>
  withKey(starting, { algorithm: "X-Wing", usage: "ENCRYPT", ...fields });

async function encrypt(kms: KmsClient, keyId: string): Promise<Uint8Array> {
  return present((await kms.encrypt({ keyId, plaintext, associatedData })).result).ciphertext;
}

async function decrypt(kms: KmsClient, ciphertext: Uint8Array): Promise<Uint8Array> {
  return present((await kms.decrypt({ ciphertext, associatedData })).result).plaintext;
}

const importSeed = (kms: KmsClient, seed: Uint8Array, usage: string) =>
  importFile(kms, seed, { algorithm: "X-Wing", usage });

describeKms("KmsService.Encrypt, Decrypt and ReEncrypt", ({ kms, shared }) => {
  describe.each(Object.entries(encBytes))("with a %s key", (algorithm, bytes) => {
    it("decrypt what they encrypted, in the specified format", async () => {
      const { kms, keyId } = await withKeyFor(shared(), { algorithm });
      const sent = await kms.encrypt({ keyId, plaintext, associatedData });
      expect(sent.result).toMatchObject({ keyId, algorithm });
      const { ciphertext } = present(sent.result);
      expect(ciphertext).toHaveLength(headBytes + bytes + plaintext.length + tagBytes);
      expect(Buffer.from(ciphertext.subarray(0, headBytes)).toString("hex")).toBe(`01${uuidOf(keyId)}`);
      const { result } = await kms.decrypt({ ciphertext, associatedData });
      expect({ ...result }).toEqual({ $typeName: "kms.DecryptResult", keyId, algorithm, plaintext });
    });

    it("reject every change after the head in the same way", async () => {
      const { kms, keyId } = await withKeyFor(shared(), { algorithm });
      const ciphertext = await encrypt(kms, keyId);
      const inHpke = headBytes + bytes;
      const lowOrder = Uint8Array.from(ciphertext).fill(0, inHpke - 32, inHpke);
      const changes: Record<string, { ciphertext?: Uint8Array; associatedData?: Uint8Array }> = {
        "enc, first bit": { ciphertext: flipBit(ciphertext, headBytes) },
        "enc, last byte": { ciphertext: flipBit(ciphertext, inHpke - 1) },
        "a point of low order": { ciphertext: lowOrder },
        "ct, first bit": { ciphertext: flipBit(ciphertext, inHpke) },
        tag: { ciphertext: flipBit(ciphertext, ciphertext.length - 1) },
        "one byte less": { ciphertext: ciphertext.subarray(0, -1) },
        "one byte more": { ciphertext: Uint8Array.of(...ciphertext, 0) },
        "the head alone": { ciphertext: ciphertext.subarray(0, headBytes) },
        "half of enc": { ciphertext: ciphertext.subarray(0, 500) },
        "other associated data": { associatedData: bytesOf("row 18") },
        "no associated data": { associatedData: new Uint8Array() },
      };
      const messages = new Set<string>();
      for (const change of Object.values(changes)) {
        const error = await failureOf(kms.decrypt({ ciphertext, associatedData, ...change }));
        expect(describeRefusal(error)).toEqual(failed);
        messages.add(error.message);
      }
      expect([...messages]).toHaveLength(1);
    });
  });

  it("accept maximum and empty data and associated data", async () => {
    const { kms, keyId } = await withKeyFor(shared());
    for (const size of [0, 65_536]) {
      const data = new Uint8Array(size).fill(7);
      const { result } = await kms.encrypt({ keyId, plaintext: data, associatedData: data });
      const answer = await kms.decrypt({ ciphertext: present(result).ciphertext, associatedData: data });
      expect(present(answer.result).plaintext).toEqual(data);
    }
  });

  it("interoperate with another HPKE implementation that has the key", async () => {
    const suite = new CipherSuite(KEM_MLKEM768_X25519, KDF_HKDF_SHA256, AEAD_AES_256_GCM);
    const pair = await suite.GenerateKeyPair(true);
    const seed = await suite.SerializePrivateKey(pair.privateKey);
    const { keyId } = await importSeed(kms, seed, "ENCRYPT");
    const head = Buffer.from(`01${uuidOf(keyId)}`, "hex");
    const context = { info: Buffer.concat([Buffer.from("qsp-kms-encrypt-v1"), head]), aad: associatedData };
    const theirs = await suite.Seal(pair.publicKey, plaintext, context);
    const ciphertext = Buffer.concat([head, theirs.encapsulatedSecret, theirs.ciphertext]);
    expect(await decrypt(kms, ciphertext)).toEqual(plaintext);
    const ours = await encrypt(kms, keyId);
    const [enc, ct] = [ours.subarray(headBytes, headBytes + 1120), ours.subarray(headBytes + 1120)];
    expect(await suite.Open(pair, enc, ct, context)).toEqual(plaintext);
  });

  it("reject keys for encapsulation, and vice versa", async () => {
    const { kms, keyId } = await withKeyFor(shared());
    const kem = await createKey(kms, { algorithm: "X-Wing" });
    const enc = (await encrypt(kms, keyId)).subarray(headBytes, headBytes + 1120);
    const calls = [
      kms.encrypt({ keyId: kem.keyId, plaintext }),
      kms.encapsulate({ keyId }),
      kms.decapsulate({ keyId, ciphertext: enc }),
    ];
    expect(await Promise.all(calls.map(refusal))).toEqual(Array(3).fill(usageRefuses));
  });

  it.each([
    ["KEM", "ENCRYPT"],
    ["ENCRYPT", "KEM"],
  ])("reject a key that is stored for %s and imported for %s", async (first, second) => {
    const seed = crypto.getRandomValues(new Uint8Array(32));
    await importSeed(kms, seed, first);
    expect(await refusal(importSeed(kms, seed, second))).toEqual(wrongKey("wrappedKey"));
    expect((await importSeed(kms, seed, first)).usage).toBe(first);
  });

  it("reject more than Encrypt accepts, so that ReEncrypt never makes what cannot be read", async () => {
    const { keyId, publicKey } = await createKeyFor(kms);
    const { keyId: targetId } = await createKeyFor(kms, { algorithm: "ML-KEM-1024" });
    const provider = await createCryptoProvider("openssl");
    const recipient = { keyId, publicKey: provider.importPublicKey("X-Wing", { raw: present(publicKey) }) };
    const data = new Uint8Array(65_537);
    const ciphertext = await encryptData(provider, recipient, { data, associatedData });
    await provider.close();
    const tooLong = invalid("ciphertext");
    expect(await refusal(kms.decrypt({ ciphertext, associatedData }))).toEqual(tooLong);
    expect(await refusal(kms.reEncrypt({ ciphertext, associatedData, keyId: targetId }))).toEqual(tooLong);
  });

  it("reject invalid ciphertexts, and ciphertexts of unknown keys", async () => {
    const { kms, keyId } = await withKeyFor(shared());
    const ciphertext = await encrypt(kms, keyId);
    for (const bad of [Uint8Array.from(ciphertext).fill(2, 0, 1), new Uint8Array(16)])
      expect(await refusal(kms.decrypt({ ciphertext: bad }))).toEqual(invalid("ciphertext"));
    const unknown = kms.decrypt({ ciphertext: flipBit(ciphertext, 5) });
    expect(await refusal(unknown)).toEqual({ code: "NotFound", reason: "KEY_NOT_FOUND" });
  });

  it("decrypt with the expected key, and reject others", async () => {
    const name = "expected";
    const { kms, keyId } = await withKeyFor(shared(), { name });
    const other = await createKeyFor(kms, { name: "other" });
    const ciphertext = await encrypt(kms, keyId);
    const decryptWith = (expected: string) => kms.decrypt({ ciphertext, associatedData, keyId: expected });
    for (const expected of [keyId, `name/${name}`, `name/${name}/1`]) await decryptWith(expected);
    for (const expected of [other.keyId, "name/other", `name/${name}/2`, `user/nobody/name/${name}`])
      expect(await refusal(decryptWith(expected))).toEqual(invalid("keyId"));
  });

  it("still decrypt with a rotated key, and move data to the new one", async () => {
    const name = "rotated";
    const { kms, keyId } = await withKeyFor(shared(), { name });
    const old = await encrypt(kms, `name/${name}`);
    const { keyId: newKeyId, usage } = present((await kms.rotateKey({ keyId })).newKey);
    expect(usage).toBe("ENCRYPT");
    expect(await refusal(kms.encrypt({ keyId, plaintext }))).toEqual(stateRefuses);
    expect(await decrypt(kms, old)).toEqual(plaintext);
    const moved = await kms.reEncrypt({ ciphertext: old, associatedData, keyId: `name/${name}` });
    expect(moved.result).toMatchObject({ keyId: newKeyId, sourceKeyId: keyId, algorithm: "X-Wing" });
    await kms.destroyKey({ keyId });
    expect(await refusal(kms.decrypt({ ciphertext: old, associatedData }))).toEqual(stateRefuses);
    expect(await decrypt(kms, present(moved.result).ciphertext)).toEqual(plaintext);
  });

  it("record each use and each refused attempt, which the log finds by operation", async () => {
    const { kms, keyId } = await withKeyFor(shared());
    const { keyId: targetId } = await createKeyFor(kms, { algorithm: "ML-KEM-1024" });
    const ciphertext = await encrypt(kms, keyId);
    await kms.decrypt({ ciphertext, associatedData });
    await kms.reEncrypt({ ciphertext, associatedData, keyId: targetId });
    await refusal(kms.decrypt({ ciphertext }));
    await refusal(kms.reEncrypt({ ciphertext, keyId: targetId }));
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual([
      "ENCRYPT OK algorithm=X-Wing",
      "DECRYPT OK algorithm=X-Wing",
      `RE_ENCRYPT OK algorithm=X-Wing, targetKeyId=${targetId}`,
      "DECRYPT REFUSED reason=DECRYPTION_FAILED",
      "RE_ENCRYPT REFUSED reason=DECRYPTION_FAILED",
    ]);
    expect((await readDeeds(kms, targetId)).slice(1)).toEqual([
      `RE_ENCRYPT OK algorithm=ML-KEM-1024, sourceKeyId=${keyId}`,
    ]);
    for (const [operation, count] of Object.entries({ ENCRYPT: 1, DECRYPT: 2, RE_ENCRYPT: 2 }))
      expect((await kms.getAuditLog({ keyId, operation })).totalSize).toBe(count);
  });
});
