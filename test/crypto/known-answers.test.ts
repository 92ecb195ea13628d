import { shake128 } from "@noble/hashes/sha3.js";
import { expect, it } from "vitest";
import type { MlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import { mlDsa, mlKem } from "../../src/crypto/noble.ts";
import { describeProviders } from "../support/crypto-providers.ts";

/**
 * Published hashes over the results of many calls whose inputs come from SHAKE128 of the empty string:
 * C2SP/CCTV, ML-DSA/accumulated (also `TestAccumulated` in Go's crypto/mldsa), and `TestAccumulated` in Go's
 * crypto/mlkem. Our interface signs and encapsulates with its own randomness, so the noble library creates
 * those values deterministically, and the provider derives, verifies and decapsulates.
 */
const accumulatedSignatures = [
  { algorithm: "ML-DSA-44", hash: "d51148e1f9f4fa1a723a6cf42e25f2a99eb5c1b378b3d2dbbd561b1203beeae4" },
  { algorithm: "ML-DSA-65", hash: "8358a1843220194417cadbc2651295cd8fc65125b5a5c1a239a16dc8b57ca199" },
  { algorithm: "ML-DSA-87", hash: "8c3ad714777622b8f21ce31bb35f71394f23bc0fcf3c78ace5d608990f3b061b" },
] as const;
const accumulatedKem = "1114b1b6699ed191734fa339376afa7e285c9e6acf6ff0177d346696ce564415";
const rounds = 100;
const message = new Uint8Array();

/**
 * Noble's signatures by secret key. All providers must derive the same keys, so each signature is created
 * once.
 */
const madeSignatures = new Map<string, Uint8Array>();

function signWithNoble(algorithm: MlDsaAlgorithm, secretKey: Uint8Array): Uint8Array {
  const key = secretKey.toHex();
  const signature =
    madeSignatures.get(key) ?? mlDsa[algorithm].sign(message, secretKey, { extraEntropy: false });
  madeSignatures.set(key, signature);
  return signature;
}

describeProviders("%s reproduces the accumulated hash of 100 rounds of", (provider) => {
  it.each(accumulatedSignatures)("$algorithm", { timeout: 120_000 }, async ({ algorithm, hash }) => {
    const input = shake128.create();
    const accumulated = shake128.create();
    for (let round = 0; round < rounds; round++) {
      const secretKey = await provider.importSecretKey(algorithm, { seed: input.xof(32) });
      const signature = signWithNoble(algorithm, secretKey.exportRaw());
      accumulated.update(secretKey.publicKey.exportRaw()).update(signature);
      expect(await provider.verify(secretKey.publicKey, message, signature)).toBe(true);
    }
    expect(accumulated.xof(32).toHex()).toBe(hash);
  });

  it("ML-KEM-768", { timeout: 120_000 }, async () => {
    const input = shake128.create();
    const accumulated = shake128.create();
    for (let round = 0; round < rounds; round++) {
      const secretKey = await provider.importSecretKey("ML-KEM-768", { seed: input.xof(64) });
      const publicKey = secretKey.publicKey.exportRaw();
      const { cipherText, sharedSecret } = mlKem["ML-KEM-768"].encapsulate(publicKey, input.xof(32));
      expect(await provider.decapsulate(secretKey, cipherText)).toEqual(sharedSecret);
      accumulated.update(publicKey).update(cipherText).update(sharedSecret);
      accumulated.update(await provider.decapsulate(secretKey, input.xof(1088)));
    }
    expect(accumulated.xof(32).toHex()).toBe(accumulatedKem);
  });
});
