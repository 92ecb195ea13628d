import { describe, expect, it } from "vitest";
import {
  type AlternativeNameKind,
  parseAlternativeName,
  readAlternativeName,
  toAddress,
  toAddressBytes,
} from "../../src/crypto/alternative-names.ts";
import { refusal } from "./refusal.ts";

/** The kind, the text, and the expected value. */
const accepted: readonly (readonly [AlternativeNameKind, string, string])[] = [
  ["dns", "example.com", "example.com"],
  ["dns", "Example.COM", "example.com"],
  ["dns", "*.example.com", "*.example.com"],
  ["dns", "localhost", "localhost"],
  ["dns", "xn--bcher-kva.example", "xn--bcher-kva.example"],
  ["ip", "127.0.0.1", "127.0.0.1"],
  ["ip", "2001:DB8:0::1", "2001:db8::1"],
  ["ip", "::", "::"],
  ["email", "ada@example.com", "ada@example.com"],
  ["email", "Ada.L+x@Example.com", "Ada.L+x@Example.com"],
  ["uri", "https://example.com/a?b=c#d", "https://example.com/a?b=c#d"],
  ["uri", "urn:example:release", "urn:example:release"],
  ["uri", "spiffe://example.com/release", "spiffe://example.com/release"],
];

const refused: readonly (readonly [AlternativeNameKind, string])[] = [
  ["dns", ""],
  ["dns", "a\0.example.com"],
  ["dns", "bücher.example"],
  ["dns", "a_b.example"],
  ["dns", "example.com."],
  ["dns", "*.com"],
  ["dns", "*"],
  ["dns", "a.*.example.com"],
  ["dns", "127.0.0.1"],
  ["dns", "0x7f.1"],
  ["dns", "a, dns:b"],
  ["dns", `${"a".repeat(64)}.test`],
  ["dns", `${"a.".repeat(127)}test`],
  ["ip", "127.0.0.1/8"],
  ["ip", "127.1"],
  ["ip", "fe80::1%eth0"],
  ["ip", "[::1]"],
  ["ip", "example.com"],
  ["email", "ada"],
  ["email", "@example.com"],
  ["email", "ada@"],
  ["email", "ada@example.com\n"],
  ["email", "Ada <ada@example.com>"],
  ["email", "a..b@example.com"],
  ["email", "ada@*.example.com"],
  ["email", "ädä@example.com"],
  ["email", `${"a".repeat(65)}@example.com`],
  ["email", '"a b"@example.com'],
  ["uri", "/release"],
  ["uri", "example.com"],
  ["uri", "https://"],
  ["uri", "spiffe:///release"],
  ["uri", "https://example.com/a b"],
  ["uri", "https://example.com/%zz"],
  ["uri", "https://example.com/ä"],
  ["uri", "https://example.com/\r\n"],
  ["uri", `urn:${"a".repeat(2045)}`],
];

describe("a subject alternative name", () => {
  it.each(accepted)("of kind %s can be %j", (kind, text, value) => {
    expect(readAlternativeName(kind, text)).toEqual({ kind, value });
    expect(parseAlternativeName(`${kind}:${text}`)).toEqual({ kind, value });
  });

  it.each(refused)("of kind %s rejects %j and quotes it", async (kind, text) => {
    expect(await refusal(() => readAlternativeName(kind, text))).toBe("INVALID_ARGUMENT");
    expect(() => readAlternativeName(kind, text)).toThrow(JSON.stringify(text));
  });

  it.each(["example.com", "host:example.com", ""])(
    "rejects a name without a valid kind: %j",
    async (text) => {
      expect(await refusal(() => parseAlternativeName(text))).toBe("INVALID_ARGUMENT");
    },
  );

  it.each([
    ["192.0.2.255", "c00002ff"],
    ["::", "00".repeat(16)],
    ["::1", `${"00".repeat(15)}01`],
    ["2001:db8::", `20010db8${"00".repeat(12)}`],
    ["2001:db8::a:0:b", "20010db8000000000000000a0000000b"],
    ["1:2:3:4:5:6:7:8", "00010002000300040005000600070008"],
    ["::ffff:7f00:1", "00000000000000000000ffff7f000001"],
  ])("converts the address %s to bytes and back", (address, bytes) => {
    expect(toAddressBytes(address).toHex()).toBe(bytes);
    expect(toAddress(Uint8Array.fromHex(bytes))).toBe(address);
  });

  it("rejects addresses that do not have 4 or 16 bytes", () => {
    expect([0, 3, 5, 8, 17, 32].map((length) => toAddress(new Uint8Array(length)))).toEqual(
      Array(6).fill(undefined),
    );
  });
});
