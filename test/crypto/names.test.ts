import { describe, expect, it } from "vitest";
import {
  type AlternativeNameKind,
  parseAlternativeName,
  readAlternativeName,
  toAddress,
  toAddressBytes,
} from "../../src/crypto/alternative-names.ts";
import { formatDistinguishedName, parseDistinguishedName } from "../../src/crypto/distinguished-name.ts";
import { refusal } from "./refusal.ts";

/** The kind, the text, and the expected value. */
const acceptedNames: readonly (readonly [AlternativeNameKind, string, string])[] = [
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

const refusedNames: readonly (readonly [AlternativeNameKind, readonly string[]])[] = [
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
  it.each(acceptedNames)("of kind %s can be %j", (kind, text, value) => {
    expect(readAlternativeName(kind, text)).toEqual({ kind, value });
    expect(parseAlternativeName(`${kind}:${text}`)).toEqual({ kind, value });
  });

  for (const [kind, texts] of refusedNames) {
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

/** Names, and their parts with the most general first. */
const read: Record<string, readonly string[]> = {
  "": [],
  "cn=release,O=Example": ["O: Example", "CN: release"],
  "CN=a=b": ["CN: a=b"],
  "CN=Lu\\C4\\8Di\\C4\\87": ["CN: Lučić"],
  'CN=a\\,b\\+c\\"d\\<e\\>f\\;g\\\\h': ['CN: a,b+c"d<e>f;g\\h'],
  "CN=\\#1": ["CN: #1"],
  "CN=a\\\\,O=b": ["O: b", "CN: a\\"],
  "CN=a\\2CO\\3Db": ["CN: a,O=b"],
  "OU=x,OU=y,DC=example,DC=com": ["DC: com", "DC: example", "OU: y", "OU: x"],
  [`CN=${"😀".repeat(64)}`]: [`CN: ${"😀".repeat(64)}`],
  "UID=ada,STREET=1 Main St,L=Bonn,ST=NRW,C=DE": [
    "C: DE",
    "ST: NRW",
    "L: Bonn",
    "STREET: 1 Main St",
    "UID: ada",
  ],
};

/** Invalid names, each with a word from the message. */
const faults: Record<string, [string, string]> = {
  "no type": ["release", "TYPE=value"],
  "an unknown type": ["EMAIL=a@b.test", "EMAIL"],
  "a space after a comma": ["CN=release, O=Example", "space"],
  "a space before =": ["CN =release", "space"],
  "an empty part": ["CN=release,,O=Example", "TYPE=value"],
  "an empty value": ["CN=", "0 characters"],
  "a long value": [`CN=${"a".repeat(65)}`, "65 characters"],
  "two attributes in one part": ["CN=a+O=b", "+"],
  "a quote": ['CN="a"', '"'],
  "a hexadecimal value": ["CN=#0c0161", "hexadecimal"],
  "a backslash at the end": ["CN=a\\", "backslash"],
  "a backslash before a letter": ["CN=\\z", "backslash"],
  "an escaped NUL": ["CN=a\\00b", "control"],
  "a line separator": ["CN=a\u2028b", "line"],
  "a mark that changes the text direction": ["CN=a\u202eb", "format"],
  "an invisible character": ["CN=a\u200bb", "format"],
  "an invisible letter": ["CN=\u3164", "invisible"],
  "a variation selector": ["CN=a\ufe0fb", "invisible"],
  "a space character other than U+0020": ["CN=a\u00a0b", "invisible"],
  "a byte order mark": ["CN=\\EF\\BB\\BFa", "format"],
  "half a surrogate pair": ["CN=\ud800", "surrogate"],
  "an escaped half surrogate pair": ["CN=\\ED\\A0\\80", "UTF-8"],
  "bytes that are not UTF-8": ["CN=\\FF", "UTF-8"],
  "a space at the beginning": ["CN= a", "space"],
  "a space at the end": ["CN=a ", "space"],
  "an escaped space at the end": ["CN=a\\ ", "space"],
  "two common names": ["CN=a,CN=b", "twice"],
  "a country of three letters": ["C=DEU", "3 characters"],
  "a lower-case country": ["C=de", "capital"],
  "a domain component with a dot": ["DC=example.com", "host name"],
  "17 parts": [Array(17).fill("OU=a").join(), "17 parts"],
};

describe("a distinguished name", () => {
  it.each(Object.entries(read))("is parsed from %j, the most general part first", (text, parts) => {
    const name = parseDistinguishedName(text);
    expect(name.map(({ type, value }) => `${type}: ${value}`)).toEqual(parts);
    expect(parseDistinguishedName(formatDistinguishedName(name))).toEqual(name);
  });

  it.each(Object.entries(faults))("is rejected with %s", async (_what, [text, word]) => {
    expect(await refusal(() => parseDistinguishedName(text))).toBe("INVALID_ARGUMENT");
    expect(() => parseDistinguishedName(text)).toThrow(word);
  });

  it("is parsed in linear time", () => {
    for (const part of ["\\", "\\\\", ",", "=", "\\,", " "])
      expect(() => parseDistinguishedName(`CN=${part.repeat(10_000)}`)).toThrow();
  });
});
