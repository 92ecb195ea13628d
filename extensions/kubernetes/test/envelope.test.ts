import { createHash, randomBytes, webcrypto } from "node:crypto";
import { hkdf } from "@noble/hashes/hkdf.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { describe, expect, it } from "vitest";
import { flipBit } from "../../../test/support/bytes.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { fieldInvalid, lengthInvalid } from "../../../test/support/refusals.ts";
import {
  checkPlaintext,
  type EnvelopeKey,
  isKeyId,
  kemAnnotation,
  maxPlaintextBytes,
  openEnvelope,
  readEnvelope,
  sealEnvelope,
} from "../envelope.ts";

const keyId = "key-01234567-89ab-4cde-8f01-23456789abcd";

function makeKey(): EnvelopeKey {
  return { keyId, kemCiphertext: randomBytes(1088), sharedSecret: randomBytes(32) };
}

/** The error that a function throws. */
const refusalOf = (call: () => unknown) => refusal(new Promise((resolve) => resolve(call())));

/** The request that the API server sends back. */
function requestOf(key: EnvelopeKey, ciphertext: Uint8Array) {
  return { keyId: key.keyId, ciphertext, annotations: { [kemAnnotation]: key.kemCiphertext } };
}

async function expectInvalid(key: EnvelopeKey, ciphertext: Uint8Array): Promise<void> {
  const opening = refusalOf(() => openEnvelope(readEnvelope(requestOf(key, ciphertext)), key.sharedSecret));
  expect(await opening).toMatchObject({ code: "InvalidArgument", reason: "CIPHERTEXT_INVALID" });
}

describe("an envelope", () => {
  it.each([0, 1, 32, maxPlaintextBytes])("opens to the %i bytes that were sealed", (length) => {
    const [key, plaintext] = [makeKey(), randomBytes(length)];
    const ciphertext = sealEnvelope(key, plaintext);
    expect(ciphertext.length).toBe(length + 29);
    const opened = openEnvelope(readEnvelope(requestOf(key, ciphertext)), key.sharedSecret);
    expect(Buffer.from(opened)).toEqual(plaintext);
  });

  it("always fits into KMS v2's kilobyte", async () => {
    expect(sealEnvelope(makeKey(), new Uint8Array(maxPlaintextBytes)).length).toBe(1024);
    const tooLong = refusalOf(() => checkPlaintext(new Uint8Array(maxPlaintextBytes + 1)));
    expect(await tooLong).toMatchObject(lengthInvalid);
  });

  it("is AES-256-GCM under HKDF-SHA256 of the shared secret, bound to purpose, key and KEM ciphertext", async () => {
    const [key, plaintext] = [makeKey(), randomBytes(32)];
    const ciphertext = Uint8Array.from(sealEnvelope(key, plaintext));
    const hash = createHash("sha256").update(key.kemCiphertext).digest();
    const info = Buffer.concat([Buffer.from(`qsp kubernetes kms v2 format 1\0${keyId}\0`), hash]);
    const aesKey = hkdf(sha256, key.sharedSecret, undefined, info, 32);
    const imported = await webcrypto.subtle.importKey("raw", aesKey, "AES-GCM", false, ["decrypt"]);
    const [iv, additionalData] = [ciphertext.subarray(1, 13), Buffer.from(`kubernetes/1/${keyId}`)];
    const algorithm = { name: "AES-GCM", iv, additionalData };
    const opened = await webcrypto.subtle.decrypt(algorithm, imported, ciphertext.subarray(13));
    expect(ciphertext[0]).toBe(1);
    expect(Buffer.from(opened)).toEqual(plaintext);
  });

  it("does not open if any bit of the ciphertext was flipped", async () => {
    const key = makeKey();
    const ciphertext = sealEnvelope(key, randomBytes(32));
    for (let at = 1; at < ciphertext.length; at += 1) await expectInvalid(key, flipBit(ciphertext, at));
  });

  it.each<[string, (key: EnvelopeKey) => EnvelopeKey]>([
    ["a different KEM ciphertext", (key) => ({ ...key, kemCiphertext: randomBytes(1088) })],
    ["a different key ID", (key) => ({ ...key, keyId: keyId.replace("0123", "3210") })],
    ["a different shared secret", (key) => ({ ...key, sharedSecret: randomBytes(32) })],
  ])("does not open with %s", async (_, change) => {
    const key = makeKey();
    const ciphertext = sealEnvelope(key, randomBytes(32));
    await expectInvalid(change(key), ciphertext);
  });
});

describe("a Decrypt request", () => {
  const valid = () => {
    const key = makeKey();
    return requestOf(key, sealEnvelope(key, randomBytes(32)));
  };
  type Request = Parameters<typeof readEnvelope>[0];
  const none = new Uint8Array();

  it.each<[string, object, Partial<Request>]>([
    ["an empty key_id", fieldInvalid, { keyId: "" }],
    ["a name as key_id", fieldInvalid, { keyId: "name/etcd" }],
    ["a key_id followed by a line break", fieldInvalid, { keyId: `${keyId}\n` }],
    ["28 bytes of ciphertext", lengthInvalid, { ciphertext: new Uint8Array(28) }],
    ["1025 bytes of ciphertext", lengthInvalid, { ciphertext: new Uint8Array(1025).fill(1) }],
    ["format 0", fieldInvalid, { ciphertext: new Uint8Array(61) }],
    ["format 2", fieldInvalid, { ciphertext: new Uint8Array(61).fill(2) }],
    ["no annotations", fieldInvalid, { annotations: {} }],
    ["an additional annotation", fieldInvalid, { annotations: { ...valid().annotations, "a.b": none } }],
    ["a different annotation", fieldInvalid, { annotations: { "a.b": new Uint8Array(1088) } }],
  ])("with %s is rejected", async (_, refused, change) => {
    expect(() => readEnvelope(valid())).not.toThrow();
    expect(await refusalOf(() => readEnvelope({ ...valid(), ...change }))).toMatchObject(refused);
  });
});

describe("a key ID", () => {
  it("has lower-case letters and no owner", () => {
    const ids = [keyId, keyId.toUpperCase(), `user/ada/${keyId}`, "key-"];
    expect(ids.filter(isKeyId)).toEqual([keyId]);
  });
});
