/** Encryption without the server: what the server's own code decrypts, and mistakes of programs. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EncryptionAlgorithm, type EncryptionInput, encryptForKey } from "../../src/client/encrypt.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { decryptData } from "../../src/crypto/key-encryption.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { bytesOf } from "../support/bytes.ts";

const keyId = "key-0f8fad5b-d9cb-469f-a165-70867728950e";
const plaintext = bytesOf("a database password");
const associatedData = bytesOf("row 17");
const algorithms: EncryptionAlgorithm[] = ["X-Wing", "ML-KEM-768", "ML-KEM-1024"];

describe("encryptForKey", () => {
  let provider: CryptoProvider;
  beforeAll(async () => {
    provider = await createCryptoProvider("openssl");
  });
  afterAll(() => provider.close());

  it.each(algorithms)("encrypts what the server decrypts, under a key of %s", async (algorithm) => {
    const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
    const input = { keyId, algorithm, publicKey: publicKey.exportRaw(), plaintext, associatedData };
    const data = await encryptForKey(input);
    expect(await decryptData(provider, secretKey, { data, associatedData })).toEqual(plaintext);
    const bare = await encryptForKey({ ...input, plaintext: new Uint8Array(), associatedData: undefined });
    expect(bare).toHaveLength({ "X-Wing": 1153, "ML-KEM-768": 1121, "ML-KEM-1024": 1601 }[algorithm]);
  });

  const valid = { keyId, algorithm: "X-Wing", publicKey: new Uint8Array(1216), plaintext };
  it.each([
    ["an unknown algorithm", { algorithm: "ML-KEM-512" }, /algorithm must be X-Wing, /],
    ["a name instead of a key ID", { keyId: "name/vault" }, /keyId must be "key-" and a UUID/],
    ["a short public key", { publicKey: new Uint8Array(1184) }, /1184 bytes; X-Wing has 1216/],
    [
      "bytes that are not a public key",
      { publicKey: new Uint8Array(1216).fill(255) },
      /publicKey is not a key/,
    ],
    ["a string as plaintext", { plaintext: "secret" }, /plaintext must be a Uint8Array/],
    ["more than the server decrypts", { plaintext: new Uint8Array(65_537) }, /the limit is 65536/],
  ])("throws a TypeError for %s", async (_what, change, message) => {
    const call = encryptForKey({ ...valid, ...change } as EncryptionInput);
    await expect(call).rejects.toThrow(TypeError);
    await expect(call).rejects.toThrow(message);
  });
});
