/** Encryption with stored keys. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_MLKEM768_X25519 } from "hpke";
import { describe, expect, it } from "vitest";
import type { CreateKeyRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { encryptData } from "../../../src/crypto/key-encryption.ts";
import { bytesOf, flipBit } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid, stateRefuses, usageRefuses, wrongKey } from "../../support/refusals.ts";
import { wrapKeyFile } from "../../support/wrap-key.ts";
import { present } from "../answers.ts";
import { describeKms, type KmsClient, readDeeds } from "./kms-server.ts";

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

async function createKey(kms: KmsClient, fields: MessageInitShape<typeof CreateKeyRequestSchema>) {
  return present((await kms.createKey(fields)).result);
}

async function encrypt(kms: KmsClient, keyId: string): Promise<Uint8Array> {
  return present((await kms.encrypt({ keyId, plaintext, associatedData })).result).ciphertext;
}

async function importSeed(kms: KmsClient, seed: Uint8Array, usage: string) {
  const wrapped = await wrapKeyFile(await kms.getImportParameters({}), seed);
  return kms.importKey({ ...wrapped, algorithm: "X-Wing", usage });
}

describeKms("KmsService.Encrypt, Decrypt and ReEncrypt", (_start, shared) => {
  describe.each(Object.entries(encBytes))("with a %s key", (algorithm, bytes) => {
    it("decrypt what they encrypted, in the specified format", async () => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm, usage: "ENCRYPT" });
      const sent = await kms.encrypt({ keyId, plaintext, associatedData });
      expect(sent.result).toMatchObject({ keyId, algorithm });
      const { ciphertext } = present(sent.result);
      expect(ciphertext).toHaveLength(headBytes + bytes + plaintext.length + tagBytes);
      expect(Buffer.from(ciphertext.subarray(0, headBytes)).toString("hex")).toBe(`01${uuidOf(keyId)}`);
      const { result } = await kms.decrypt({ ciphertext, associatedData });
      expect({ ...result }).toEqual({ $typeName: "kms.DecryptResult", keyId, algorithm, plaintext });
    });

    it("reject every change after the head in the same way", async () => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm, usage: "ENCRYPT" });
      const ciphertext = await encrypt(kms, keyId);
      const inHpke = headBytes + bytes;
      const lowOrder = Uint8Array.from(ciphertext).fill(0, inHpke - 32, inHpke);
      const changes: Record<string, { ciphertext: Uint8Array; associatedData?: Uint8Array }> = {
        "enc, first bit": { ciphertext: flipBit(ciphertext, headBytes), associatedData },
        "enc, last byte": { ciphertext: flipBit(ciphertext, inHpke - 1), associatedData },
        "a point of low order": { ciphertext: lowOrder, associatedData },
        "ct, first bit": { ciphertext: flipBit(ciphertext, inHpke), associatedData },
        tag: { ciphertext: flipBit(ciphertext, ciphertext.length - 1), associatedData },
        "one byte less": { ciphertext: ciphertext.subarray(0, -1), associatedData },
        "one byte more": { ciphertext: Uint8Array.of(...ciphertext, 0), associatedData },
        "the head alone": { ciphertext: ciphertext.subarray(0, headBytes), associatedData },
        "half of enc": { ciphertext: ciphertext.subarray(0, 500), associatedData },
        "other associated data": { ciphertext, associatedData: bytesOf("row 18") },
        "no associated data": { ciphertext },
      };
      const messages = new Set<string>();
      for (const change of Object.values(changes)) {
        expect(await refusal(kms.decrypt(change))).toEqual(failed);
        await kms.decrypt(change).catch(({ message }: Error) => messages.add(message));
      }
      expect([...messages]).toHaveLength(1);
    });
  });

  it("accept maximum and empty data and associated data", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms, { usage: "ENCRYPT" });
    for (const size of [0, 65_536]) {
      const data = new Uint8Array(size).fill(7);
      const { result } = await kms.encrypt({ keyId, plaintext: data, associatedData: data });
      const answer = await kms.decrypt({ ciphertext: present(result).ciphertext, associatedData: data });
      expect(present(answer.result).plaintext).toEqual(data);
    }
    for (const field of ["plaintext", "associatedData"])
      expect(await refusal(kms.encrypt({ keyId, [field]: new Uint8Array(65_537) }))).toEqual(invalid(field));
  });

  it("interoperate with another HPKE implementation that has the key", async () => {
    const { kms } = await shared();
    const suite = new CipherSuite(KEM_MLKEM768_X25519, KDF_HKDF_SHA256, AEAD_AES_256_GCM);
    const pair = await suite.GenerateKeyPair(true);
    const seed = await suite.SerializePrivateKey(pair.privateKey);
    const { keyId } = present((await importSeed(kms, seed, "ENCRYPT")).result);
    const head = Buffer.from(`01${uuidOf(keyId)}`, "hex");
    const context = { info: Buffer.concat([Buffer.from("qsp-kms-encrypt-v1"), head]), aad: associatedData };
    const theirs = await suite.Seal(pair.publicKey, plaintext, context);
    const ciphertext = Buffer.concat([head, theirs.encapsulatedSecret, theirs.ciphertext]);
    const { result } = await kms.decrypt({ ciphertext, associatedData });
    expect(present(result).plaintext).toEqual(plaintext);
    const ours = await encrypt(kms, keyId);
    const [enc, ct] = [ours.subarray(headBytes, headBytes + 1120), ours.subarray(headBytes + 1120)];
    expect(await suite.Open(pair, enc, ct, context)).toEqual(plaintext);
  });

  it("use X-Wing by default, and reject algorithms that HPKE lacks", async () => {
    const { kms } = await shared();
    const { algorithm, usage } = await createKey(kms, { usage: "ENCRYPT" });
    expect([algorithm, usage]).toEqual(["X-Wing", "ENCRYPT"]);
    for (const other of ["ML-KEM-512", "ML-DSA-65"])
      expect(await refusal(createKey(kms, { algorithm: other, usage: "ENCRYPT" }))).toEqual(invalid("usage"));
  });

  it("reject keys for encapsulation, and vice versa", async () => {
    const { kms } = await shared();
    const encrypting = await createKey(kms, { usage: "ENCRYPT" });
    const kem = await createKey(kms, { algorithm: "X-Wing" });
    const ciphertext = await encrypt(kms, encrypting.keyId);
    expect(await refusal(kms.encrypt({ keyId: kem.keyId, plaintext }))).toEqual(usageRefuses);
    expect(await refusal(kms.encapsulate({ keyId: encrypting.keyId }))).toEqual(usageRefuses);
    const enc = ciphertext.subarray(headBytes, headBytes + 1120);
    expect(await refusal(kms.decapsulate({ keyId: encrypting.keyId, ciphertext: enc }))).toEqual(
      usageRefuses,
    );
  });

  it.each([
    ["KEM", "ENCRYPT"],
    ["ENCRYPT", "KEM"],
  ])("reject a key that is stored for %s and imported for %s", async (first, second) => {
    const { kms } = await shared();
    const seed = crypto.getRandomValues(new Uint8Array(32));
    await importSeed(kms, seed, first);
    expect(await refusal(importSeed(kms, seed, second))).toEqual(wrongKey("wrappedKey"));
    expect(present((await importSeed(kms, seed, first)).result).usage).toBe(first);
  });

  it("reject more than Encrypt accepts, so that ReEncrypt never makes what cannot be read", async () => {
    const { kms } = await shared();
    const { keyId, publicKey } = await createKey(kms, { usage: "ENCRYPT" });
    const { keyId: targetId } = await createKey(kms, { algorithm: "ML-KEM-1024", usage: "ENCRYPT" });
    const provider = await createCryptoProvider("openssl");
    const recipient = { keyId, publicKey: provider.importPublicKey("X-Wing", { raw: present(publicKey) }) };
    const data = new Uint8Array(65_537);
    const ciphertext = await encryptData(provider, recipient, { data, associatedData });
    await provider.close();
    const tooLong = invalid("ciphertext");
    expect(await refusal(kms.decrypt({ ciphertext, associatedData }))).toEqual(tooLong);
    expect(await refusal(kms.reEncrypt({ ciphertext, associatedData, keyId: targetId }))).toEqual(tooLong);
  });

  it("reject a name in a key ring of Google's interface", async () => {
    const { kms } = await shared();
    const name = "projects/p/locations/l/keyRings/r/cryptoKeys/k";
    expect(await refusal(createKey(kms, { usage: "ENCRYPT", name }))).toEqual(invalid("name"));
  });

  it("reject invalid ciphertexts, and ciphertexts of unknown keys", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms, { usage: "ENCRYPT" });
    const ciphertext = await encrypt(kms, keyId);
    const other = Uint8Array.from(ciphertext).fill(2, 0, 1);
    expect(await refusal(kms.decrypt({ ciphertext: other }))).toEqual(invalid("ciphertext"));
    expect(await refusal(kms.decrypt({ ciphertext: new Uint8Array(16) }))).toEqual(invalid("ciphertext"));
    const unknown = flipBit(ciphertext, 5);
    expect(await refusal(kms.decrypt({ ciphertext: unknown }))).toEqual({
      code: "NotFound",
      reason: "KEY_NOT_FOUND",
    });
  });

  it("decrypt with the expected key, and reject others", async () => {
    const { kms } = await shared();
    const name = "expected";
    const { keyId } = await createKey(kms, { usage: "ENCRYPT", name });
    const other = await createKey(kms, { usage: "ENCRYPT", name: "other" });
    const ciphertext = await encrypt(kms, keyId);
    for (const expected of [keyId, `name/${name}`, `name/${name}/1`])
      await kms.decrypt({ ciphertext, associatedData, keyId: expected });
    for (const expected of [other.keyId, "name/other", `name/${name}/2`, `user/nobody/name/${name}`])
      expect(await refusal(kms.decrypt({ ciphertext, associatedData, keyId: expected }))).toEqual(
        invalid("keyId"),
      );
  });

  it("still decrypt with a rotated key, and move data to the new one", async () => {
    const { kms } = await shared();
    const name = "rotated";
    const { keyId } = await createKey(kms, { usage: "ENCRYPT", name });
    const old = await encrypt(kms, `name/${name}`);
    const { keyId: newKeyId, usage } = present((await kms.rotateKey({ keyId })).newKey);
    expect(usage).toBe("ENCRYPT");
    expect(await refusal(kms.encrypt({ keyId, plaintext }))).toEqual(stateRefuses);
    expect(present((await kms.decrypt({ ciphertext: old, associatedData })).result).plaintext).toEqual(
      plaintext,
    );
    const moved = await kms.reEncrypt({ ciphertext: old, associatedData, keyId: `name/${name}` });
    expect(moved.result).toMatchObject({ keyId: newKeyId, sourceKeyId: keyId, algorithm: "X-Wing" });
    await kms.destroyKey({ keyId });
    expect(await refusal(kms.decrypt({ ciphertext: old, associatedData }))).toEqual(stateRefuses);
    const { ciphertext } = present(moved.result);
    const read = await kms.decrypt({ ciphertext, associatedData });
    expect(present(read.result)).toMatchObject({ keyId: newKeyId, plaintext });
  });

  it("record each use and each refused attempt, which the log finds by operation", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms, { usage: "ENCRYPT" });
    const { keyId: targetId } = await createKey(kms, { algorithm: "ML-KEM-1024", usage: "ENCRYPT" });
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
