/**
 * The vectors of draft-ietf-hpke-pq. None has AES-256-GCM, so they cover our KEMs, and the key schedule with the other AEAD;
 * test/vectors/own/encryption.json and other implementations cover the rest.
 */
import { describe, expect, it } from "vitest";
import type { HpkeAlgorithm } from "../../src/crypto/hpke.ts";
import { openMessage, sealMessage } from "../../src/crypto/hpke-suite.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import draft from "../vectors/hpke-pq.json" with { type: "json" };

const hex = Uint8Array.fromHex;
const vectors = draft.vectors.map((vector) => ({ ...vector, algorithm: vector.algorithm as HpkeAlgorithm }));
/** HKDF-SHA256 and ChaCha20-Poly1305 (RFC 9180, sections 7.2 and 7.3). */
const ours = vectors.filter(({ kdf_id, aead_id }) => kdf_id === 1 && aead_id === 3);

describe("the draft's test vectors", () => {
  it("have each of our KEMs, and one has a key schedule of ours", () => {
    expect(vectors.map(({ mode, kem_id }) => [mode, kem_id])).toEqual([
      [0, 0x0041],
      [0, 0x0042],
      [0, 0x647a],
      [0, 0x647a],
      [0, 0x0042],
    ]);
    expect(ours.map(({ algorithm }) => algorithm)).toEqual(["X-Wing"]);
  });
});

describeProviders("HPKE with %s", (provider) => {
  it.each(vectors)(
    "derives the draft's public key and shared secret: $algorithm, $kdf_id, $aead_id",
    async ({ algorithm, skRm, pkRm, enc, shared_secret }) => {
      const secretKey = await provider.importSecretKey(algorithm, { seed: hex(skRm) });
      expect(secretKey.publicKey.exportRaw()).toEqual(hex(pkRm));
      expect(await provider.decapsulate(secretKey, hex(enc))).toEqual(hex(shared_secret));
    },
  );
});

it.each(ours)("opens the draft's ciphertext: $algorithm", ({ kem_id, shared_secret, ct, pt, info, aad }) => {
  const secret = { kemId: kem_id, sharedSecret: hex(shared_secret) };
  const context = { info: hex(info), aad: hex(aad), aead: "ChaCha20Poly1305" } as const;
  expect(openMessage(secret, hex(ct), context)).toEqual(hex(pt));
  expect(sealMessage(secret, hex(pt), context).toString("hex")).toBe(ct);
});
