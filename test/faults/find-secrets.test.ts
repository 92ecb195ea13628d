import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { findSecrets } from "./secrets.ts";

describe("findSecrets", () => {
  const secret = { name: "secret", bytes: randomBytes(96) };
  const forms: [string, (bytes: Buffer) => string | Buffer][] = [
    ["raw bytes", (bytes) => bytes],
    ["hexadecimal", (bytes) => bytes.toString("hex")],
    ["upper-case hexadecimal", (bytes) => bytes.toString("hex").toUpperCase()],
    ["base64", (bytes) => bytes.toString("base64")],
    ["base64url", (bytes) => bytes.toString("base64url")],
    ["a Buffer in JSON", (bytes) => JSON.stringify(bytes)],
    ["a Uint8Array in JSON", (bytes) => JSON.stringify(new Uint8Array(bytes))],
    ["a Uint8Array in JSON in JSON", (bytes) => JSON.stringify(JSON.stringify(new Uint8Array(bytes)))],
    ["a Buffer as Node prints it", (bytes) => inspect(bytes, { maxArrayLength: null })],
    ["a Uint8Array as Node prints it", (bytes) => inspect(new Uint8Array(bytes), { maxArrayLength: null })],
  ];
  describe.each(forms)("finds a secret as %s", (_form, write) => {
    it.each([0, 1, 2, 3, 4, 5])("%s bytes into other bytes", (before) => {
      const bytes = write(Buffer.concat([randomBytes(before), secret.bytes, randomBytes(7)]));
      expect(findSecrets([{ name: "log", bytes: Buffer.from(bytes) }], [secret])).toEqual(["secret in log"]);
    });
    it.each([0, 15, 33, 48])("with only the 48 bytes from offset %s", (from) => {
      const bytes = Buffer.from(write(secret.bytes.subarray(from, from + 48)));
      expect(findSecrets([{ name: "log", bytes }], [secret])).toEqual(["secret in log"]);
    });
  });
  it("does not mistake the trailing zeros of one signature for another signature", () => {
    const token = { name: "token", bytes: Buffer.from(endedByZeros().toString("base64url")) };
    const bytes = Buffer.from(endedByZeros().toString("base64url"));
    expect(findSecrets([{ name: "log", bytes }], [token])).toEqual([]);
    expect(findSecrets([{ name: "log", bytes: token.bytes }], [token])).toEqual(["token in log"]);
  });
  it("finds nothing in other bytes", () => {
    expect(findSecrets([{ name: "log", bytes: randomBytes(100_000) }], [secret])).toEqual([]);
  });
});

function endedByZeros(): Buffer {
  return Buffer.concat([randomBytes(99), Buffer.alloc(60)]);
}
