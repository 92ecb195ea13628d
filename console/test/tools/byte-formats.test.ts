import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { chooseFormat, listFormats, writeBytes, writePublicKeyPem } from "../../page/byte-formats.ts";

/** A fresh public key from OpenSSL, raw and as PEM. */
function makePublicKey(name: string) {
  const { publicKey } = generateKeyPairSync(name.toLowerCase() as "ml-dsa-44");
  return {
    raw: Uint8Array.from(publicKey.export({ format: "raw-public" })),
    pem: publicKey.export({ type: "spki", format: "pem" }).toString(),
  };
}

describe("a public key as PEM", () => {
  it.each(["ML-DSA-44", "ML-DSA-87", "ML-KEM-768", "SLH-DSA-SHA2-128s"])(
    "matches OpenSSL's output: %s",
    (name) => {
      const { raw, pem } = makePublicKey(name);
      expect(writePublicKeyPem(raw, name)).toBe(pem);
    },
  );

  it("is offered only for public keys with a known algorithm and the right length", () => {
    const publicKey = new Uint8Array(1952);
    expect(listFormats(publicKey, "ML-DSA-65")).toContain("PEM");
    expect(listFormats(new Uint8Array(), "ML-DSA-65")).toEqual(["hex", "base64"]);
    for (const algorithm of [undefined, "ML-DSA-87", "toString"])
      expect(listFormats(publicKey, algorithm)).toEqual(["hex", "base64"]);
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
    expect([start.slice(0, 14), restSize]).toEqual(["0001 0203 0405", "18 more bytes"]);
    expect(start.replaceAll(" ", "")).toHaveLength(64);
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
