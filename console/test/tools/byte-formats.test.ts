import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { chooseFormat, listFormats, writeBytes, writePublicKeyPem } from "../../page/byte-formats.ts";

/** A fresh public key from OpenSSL, raw and as PEM. */
function makePublicKey(name: "ml-dsa-44" | "ml-dsa-87" | "ml-kem-768" | "slh-dsa-sha2-128s") {
  // TypeScript has no overload for a union of names.
  const { publicKey } = generateKeyPairSync(name as "ml-dsa-44");
  const der = publicKey.export({ type: "spki", format: "der" });
  const rawBytes = { "ml-dsa-44": 1312, "ml-dsa-87": 2592, "ml-kem-768": 1184, "slh-dsa-sha2-128s": 32 }[
    name
  ];
  return {
    raw: Uint8Array.from(der.subarray(-rawBytes)),
    pem: publicKey.export({ type: "spki", format: "pem" }).toString(),
  };
}

describe("a public key as PEM", () => {
  for (const [name, algorithm] of [
    ["ml-dsa-44", "ML-DSA-44"],
    ["ml-dsa-87", "ML-DSA-87"],
    ["ml-kem-768", "ML-KEM-768"],
    ["slh-dsa-sha2-128s", "SLH-DSA-SHA2-128s"],
  ] as const)
    it(`matches OpenSSL's output for ${algorithm}`, () => {
      const { raw, pem } = makePublicKey(name);
      expect(writePublicKeyPem(raw, algorithm)).toBe(pem);
      expect(createPublicKey(writePublicKeyPem(raw, algorithm)).asymmetricKeyType).toBe(name);
    });

  it("is offered only for public keys with a known algorithm and the right length", () => {
    const publicKey = new Uint8Array(1952);
    expect(listFormats(publicKey, "ML-DSA-65")).toContain("PEM");
    for (const [value, algorithm] of [
      [publicKey, undefined],
      [publicKey, "ML-DSA-87"],
      [publicKey, "toString"],
      [new Uint8Array(), "ML-DSA-65"],
    ] as const)
      expect(listFormats(value, algorithm)).toEqual(["hex", "base64"]);
  });

  it("falls back to base64 for other values if the reader prefers PEM", () => {
    expect(chooseFormat("PEM", ["hex", "base64"])).toBe("base64");
    expect(chooseFormat("PEM", ["hex", "base64", "PEM"])).toBe("PEM");
  });
});

describe("displayed bytes", () => {
  const value = Uint8Array.from({ length: 50 }, (_, index) => index);

  it("are the first ones and the rest, in groups of hexadecimal", () => {
    const { whole, start, rest, restSize } = writeBytes(value, "hex");
    expect(whole).toBe(Buffer.from(value).toString("hex"));
    expect([start.slice(0, 14), start.replaceAll(" ", "").length, restSize]).toEqual([
      "0001 0203 0405",
      64,
      "18 more bytes",
    ]);
    expect((start + rest).replaceAll(" ", "")).toBe(whole);
  });

  it("are base64 as in REST calls", () => {
    const { whole, start, rest, restSize } = writeBytes(value, "base64");
    expect(whole).toBe(Buffer.from(value).toString("base64"));
    expect([start + rest, restSize]).toEqual([whole, "4 more characters"]);
  });

  it("are the first lines of PEM and the rest", () => {
    const { start, rest, whole } = writeBytes(new Uint8Array(1952), "PEM", "ML-DSA-65");
    expect(start).toMatch(/^-----BEGIN PUBLIC KEY-----\n\S{64}$/);
    expect(`${start}\n${rest}`).toBe(whole);
  });

  it("have no rest if they are few", () => {
    for (const format of ["hex", "base64"] as const)
      expect(writeBytes(Uint8Array.of(1, 2), format)).toMatchObject({ rest: "" });
  });
});
