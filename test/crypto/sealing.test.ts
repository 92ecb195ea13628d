import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { nameMasterKey, openSecret, type SealedSecret, sealSecret } from "../../src/crypto/sealing.ts";
import { flipBit } from "../support/bytes.ts";
import { refusal } from "./refusal.ts";

const masterKey = randomBytes(32);
const identity = "issuer_keys/k1/seed";
const secret = Buffer.from("0123456789abcdef0123456789abcdef");

describe("a sealed secret", () => {
  const sealed = sealSecret(masterKey, identity, secret);
  const other = sealSecret(masterKey, identity, secret);

  it("opens with the same master key for the same record", () => {
    expect(Buffer.from(openSecret(masterKey, identity, sealed))).toEqual(secret);
  });

  it("has a 60-byte wrapped data key, and is 28 bytes longer than the secret", () => {
    expect(sealed.wrappedDataKey).toHaveLength(60);
    expect(sealed.ciphertext).toHaveLength(secret.length + 28);
  });

  it("reveals nothing about the secret, and differs each time", () => {
    expect(Buffer.from(sealed.ciphertext).includes(secret.subarray(0, 8))).toBe(false);
    expect(other).not.toEqual(sealed);
  });

  it.each<[what: string, key: Uint8Array, record: string, changed: Partial<SealedSecret>]>([
    ["a different master key", randomBytes(32), identity, {}],
    ["a different record", masterKey, "issuer_keys/k2/seed", {}],
    ["another record's data key", masterKey, identity, { wrappedDataKey: other.wrappedDataKey }],
    ["nothing", masterKey, identity, { ciphertext: sealed.ciphertext.subarray(0, 0) }],
    ["a part of its nonce", masterKey, identity, { ciphertext: sealed.ciphertext.subarray(0, 11) }],
    ["a part of its tag", masterKey, identity, { ciphertext: sealed.ciphertext.subarray(0, 27) }],
  ])("does not open with %s", async (_what, key, record, changed) => {
    expect(await refusal(() => openSecret(key, record, { ...sealed, ...changed }))).toBe("SEAL_BROKEN");
  });

  it.each(["wrappedDataKey", "ciphertext"] as const)(
    "does not open if any bit of its %s is changed",
    async (part) => {
      for (let index = 0; index < sealed[part].length; index += 1) {
        const changed = { ...sealed, [part]: flipBit(sealed[part], index) };
        expect(await refusal(() => openSecret(masterKey, identity, changed)), `byte ${index}`).toBe(
          "SEAL_BROKEN",
        );
      }
    },
  );
});

describe("nameMasterKey", () => {
  it("returns 32 hexadecimal digits that differ between keys", () => {
    expect(nameMasterKey(masterKey)).toMatch(/^[0-9a-f]{32}$/);
    expect(nameMasterKey(masterKey)).not.toBe(nameMasterKey(randomBytes(32)));
  });
});
