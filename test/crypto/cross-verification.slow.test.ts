/** The providers use each other's keys, signatures and ciphertexts. */
import { afterAll, expect, it } from "vitest";
import { kemNames, mlDsaNames } from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { flipBit } from "../support/bytes.ts";
import { isNativeSkipped, nativeNeed } from "../support/crypto-providers.ts";

const message = new TextEncoder().encode("signed here, verified there");

const openssl = await createCryptoProvider("openssl");
const native = await createCryptoProvider(isNativeSkipped ? "openssl" : "native");
afterAll(() => Promise.all([openssl.close(), native.close()]));
const directions = [
  { from: openssl, to: native },
  { from: native, to: openssl },
];

// The official vectors prove each provider's SLH-DSA, which the native provider leaves to OpenSSL.
it.skipIf(isNativeSkipped).each([...mlDsaNames, "SLH-DSA-SHA2-128f", "ECDSA-P256"] as const)(
  `a signature verifies with the other provider, which can sign with the same key (%s)${nativeNeed}`,
  async (algorithm) => {
    for (const { from, to } of directions) {
      const { publicKey, secretKey } = await from.generateKeyPair(algorithm);
      const sameKey = await to.importSecretKey(algorithm, { raw: secretKey.exportRaw() });
      const signature = await from.sign(secretKey, message);
      expect(await to.verify(sameKey.publicKey, message, signature)).toBe(true);
      expect(await to.verify(sameKey.publicKey, message, flipBit(signature, signature.length >> 1))).toBe(
        false,
      );
      expect(await from.verify(publicKey, message, await to.sign(sameKey, message))).toBe(true);
    }
  },
);

it.skipIf(isNativeSkipped).each(kemNames)(
  `a key pair shares secrets with the other provider, even for a wrong ciphertext (%s)${nativeNeed}`,
  async (algorithm) => {
    for (const { from, to } of directions) {
      const { publicKey, secretKey } = await from.generateKeyPair(algorithm);
      const sameKey = await to.importSecretKey(algorithm, { raw: secretKey.exportRaw() });
      const received = to.importPublicKey(algorithm, { raw: publicKey.exportRaw() });
      const { ciphertext, sharedSecret } = await to.encapsulate(received);
      expect(await from.decapsulate(secretKey, ciphertext)).toEqual(sharedSecret);
      const wrong = flipBit(ciphertext, 5);
      expect(await from.decapsulate(secretKey, wrong)).toEqual(await to.decapsulate(sameKey, wrong));
    }
  },
);
