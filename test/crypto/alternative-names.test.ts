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
  ["dns", "xn--bcher-kva.example", "xn--bcher-kva.example"],
  ["ip", "127.0.0.1", "127.0.0.1"],
  ["ip", "2001:DB8:0::1", "2001:db8::1"],
  ["email", "ada@example.com", "ada@example.com"],
  ["email", "Ada.L+x@Example.com", "Ada.L+x@Example.com"],
  ["uri", "https://example.com/a?b=c#d", "https://example.com/a?b=c#d"],
  ["uri", "spiffe://example.com/release", "spiffe://example.com/release"],
];

const refused: readonly (readonly [AlternativeNameKind, readonly string[]])[] = [
  ["dns", ["", "a\0.example.com", "bücher.example", "a_b.example", "example.com.", "127.0.0.1", "0x7f.1"]],
  ["dns", ["*.com", "*", "a.*.example.com", "a, dns:b", `${"a".repeat(64)}.test`, `${"a.".repeat(127)}test`]],
  ["ip", ["127.0.0.1/8", "127.1", "fe80::1%eth0", "[::1]", "example.com"]],
  [
    "email",
    ["ada", "@example.com", "ada@", "ada@example.com\n", "Ada <ada@example.com>", "a..b@example.com"],
  ],
  ["email", ["ada@*.example.com", "ädä@example.com", `${"a".repeat(65)}@example.com`, '"a b"@example.com']],
  ["uri", ["/release", "example.com", "https://", "spiffe:///release", `urn:${"a".repeat(2045)}`]],
  ["uri", ["https://example.com/a b", "https://e.test/%zz", "https://e.test/ä", "https://e.test/\r\n"]],
];

describe("a subject alternative name", () => {
  it.each(accepted)("of kind %s can be %j", (kind, text, value) => {
    expect(readAlternativeName(kind, text)).toEqual({ kind, value });
    expect(parseAlternativeName(`${kind}:${text}`)).toEqual({ kind, value });
  });

  for (const [kind, texts] of refused) {
    it.each(texts)(`of kind ${kind} rejects %j and quotes it`, async (text) => {
      const read = () => readAlternativeName(kind, text);
      expect(await refusal(read)).toBe("INVALID_ARGUMENT");
      expect(read).toThrow(JSON.stringify(text));
    });
  }

  it.each(["example.com", "host:example.com", ""])(
    "rejects a name without a valid kind: %j",
    async (text) => {
      expect(await refusal(() => parseAlternativeName(text))).toBe("INVALID_ARGUMENT");
    },
  );

  it.each([
    ["192.0.2.255", "c00002ff"],
    ["::", "00".repeat(16)],
    ["2001:db8::a:0:b", "20010db8000000000000000a0000000b"],
    ["1:2:3:4:5:6:7:8", "00010002000300040005000600070008"],
    ["::ffff:7f00:1", "00000000000000000000ffff7f000001"],
  ])("converts the address %s to bytes and back", (address, bytes) => {
    expect(toAddressBytes(address).toHex()).toBe(bytes);
    expect(toAddress(Uint8Array.fromHex(bytes))).toBe(address);
  });

  it("rejects addresses that do not have 4 or 16 bytes", () => {
    expect([0, 3, 5, 17].filter((length) => toAddress(new Uint8Array(length)) !== undefined)).toEqual([]);
  });
});
