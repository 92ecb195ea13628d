/** Shares of a master key: their format, and what restores the key. */
import { createHash } from "node:crypto";
import { base32crockford } from "@scure/base";
import { describe, expect, it } from "vitest";
import { combineShares, maxShares, readShare, splitKey } from "../../src/crypto/key-shares.ts";
import { nameMasterKey } from "../../src/crypto/sealing.ts";

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
