import { createHash, randomBytes } from "node:crypto";
import { base32crockford } from "@scure/base";
import { describe, expect, it } from "vitest";
import { combineShares, maxShares, readShare, splitKey } from "../../src/crypto/key-shares.ts";
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

const key = Uint8Array.from({ length: 32 }, (_, i) => i);

/** Three of five shares of this key, of which any three restore it. */
const knownShares = [
  "041G 3TC5 RQPE HEQZ 1DTT\nESSP C7CR 73TC 5NE9 N6WG\n1N0Q 562X J22N N78Y CDGD\nPK3G K1RB 3XHW QF6T KF28",
  "041G 7TC5 RQPE HEQZ 1DTT\nFCQR FKWG 3Q6P PTYB VAK2\n5N48 JXAV TR8G S3SH 9D2K\n6Q92 T302 7WQJ A5GE NJPH",
  "041G BTC5 RQPE HEQZ 1DTT\nFXNH APJ9 3AV9 8KG6 D8KW\n3KJ4 RSA4 PWS9 JXQ6 0Q2F\nRB9G HDEA P73M NGYR P6MP",
];

/** Changes one character of a share into another digit. */
function mistype(share: string, at: number): string {
  return share.slice(0, at) + (share[at] === "0" ? "1" : "0") + share.slice(at + 1);
}

describe("the shares of a master key", () => {
  it.each([
    [2, 2],
    [5, 3],
    [maxShares, 20],
  ])("are %i, of which any %i restore it", async (count, threshold) => {
    const { setId, shares } = await splitKey(key, count, threshold);
    const read = shares.map(readShare);
    expect(read.map(({ secret: _, ...share }) => share)).toEqual(
      shares.map((_, i) => ({ setId, threshold, number: i + 1, keyId: nameMasterKey(key).slice(0, 12) })),
    );
    expect(await combineShares(read.slice(0, threshold))).toEqual(key);
    expect(await combineShares(read.slice(-threshold).reverse())).toEqual(key);
    expect(await combineShares(read)).toEqual(key);
  });

  it("do not restore it if there are fewer", async () => {
    const read = (await splitKey(key, 5, 3)).shares.map(readShare);
    await expect(combineShares(read.slice(0, 2))).rejects.toThrow("a different key from the one they name");
  });

  it.each([
    [0, 2, "it is of version 2; this program reads version 1"],
    [1, 0, "its threshold is 0"],
    [1, 1, "its threshold is 1"],
    [2, 0, "its number is 0"],
  ])("are refused with byte %i set to %i, even if the checksum is right", (at, value, reason) => {
    const bytes = base32crockford.decode((knownShares[0] ?? "").replaceAll(/\s/g, ""));
    bytes[at] = value;
    const body = bytes.subarray(0, -4);
    bytes.set(
      createHash("sha256").update("qsp master key share").update(body).digest().subarray(0, 4),
      body.length,
    );
    expect(() => readShare(base32crockford.encode(bytes))).toThrow(reason);
  });

  it("keep their format", async () => {
    expect(await combineShares(knownShares.map(readShare))).toEqual(key);
  });

  it("are four lines of five groups of four characters, which differ for each split", async () => {
    const [one, other] = [await splitKey(key, 2, 2), await splitKey(key, 2, 2)];
    for (const share of [...one.shares, ...other.shares])
      expect(share).toMatch(/^(([0-9A-HJKMNP-TV-Z]{4} ){4}[0-9A-HJKMNP-TV-Z]{4}(\n|$)){4}$/);
    expect(one.setId).not.toBe(other.setId);
  });
});

describe("a share that a person has typed", () => {
  const [share = ""] = knownShares;

  it.each([
    ["in lower case", share.toLowerCase()],
    ["on one line, with hyphens", share.replaceAll(/\s/g, "-")],
    ["without spaces", share.replaceAll(/\s/g, "")],
    ["with O for 0 and with I or L for 1", share.replaceAll("0", "O").replace("1", "I").replaceAll("1", "l")],
  ])("is read %s", (_form, text) => {
    expect(readShare(text)).toEqual(readShare(share));
  });

  it("is refused with any wrong character", () => {
    const at = [...share.matchAll(/\S/g)].map(({ index }) => index);
    expect(at).toHaveLength(80);
    for (const i of at) expect(() => readShare(mistype(share, i))).toThrow("its checksum does not match");
  });

  it("is refused with two exchanged characters", () => {
    expect(() => readShare(share.replace("3T", "T3"))).toThrow("its checksum does not match");
  });

  it.each([
    ["a missing character", share.slice(1), "it has 79 characters; a share has 80"],
    ["an additional character", `${share}0`, "it has 81 characters; a share has 80"],
    ["a character that no share has", share.replace("3T", "3U"), "character 6 is not a digit of a share"],
  ])("is refused with %s", (_fault, text, reason) => {
    expect(() => readShare(text)).toThrow(reason);
  });
});
