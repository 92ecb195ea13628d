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

  it("opens with the same master key for the same record", () => {
    expect(Buffer.from(openSecret(masterKey, identity, sealed))).toEqual(secret);
  });

  it("has a 60-byte wrapped data key, and is 28 bytes longer than the secret", () => {
    expect(sealed.wrappedDataKey).toHaveLength(60);
    expect(sealed.ciphertext).toHaveLength(secret.length + 28);
  });

  it("reveals nothing about the secret, and differs each time", () => {
    expect(Buffer.from(sealed.ciphertext).includes(secret.subarray(0, 8))).toBe(false);
    expect(sealSecret(masterKey, identity, secret)).not.toEqual(sealed);
  });

  it("does not open with a different master key", async () => {
    expect(await refusal(() => openSecret(randomBytes(32), identity, sealed))).toBe("SEAL_BROKEN");
  });

  it("does not open for a different record", async () => {
    expect(await refusal(() => openSecret(masterKey, "issuer_keys/k2/seed", sealed))).toBe("SEAL_BROKEN");
  });

  it("does not open with a different record's data key", async () => {
    const other = sealSecret(masterKey, identity, secret);
    const mixed: SealedSecret = { ...sealed, wrappedDataKey: other.wrappedDataKey };
    expect(await refusal(() => openSecret(masterKey, identity, mixed))).toBe("SEAL_BROKEN");
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

  it.each([0, 11, 27])("does not open if truncated to %i bytes", async (length) => {
    const changed = { ...sealed, ciphertext: sealed.ciphertext.subarray(0, length) };
    expect(await refusal(() => openSecret(masterKey, identity, changed))).toBe("SEAL_BROKEN");
  });
});

describe("nameMasterKey", () => {
  it("returns 32 hexadecimal digits that differ between keys", () => {
    expect(nameMasterKey(masterKey)).toMatch(/^[0-9a-f]{32}$/);
    expect(nameMasterKey(masterKey)).not.toBe(nameMasterKey(randomBytes(32)));
  });
});
