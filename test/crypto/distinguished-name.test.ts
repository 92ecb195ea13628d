import { describe, expect, it } from "vitest";
import { formatDistinguishedName, parseDistinguishedName } from "../../src/crypto/distinguished-name.ts";
import { refusal } from "./refusal.ts";

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
const refused: Record<string, [string, string]> = {
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

  it.each(Object.entries(refused))("is rejected with %s", async (_what, [text, word]) => {
    expect(await refusal(() => parseDistinguishedName(text))).toBe("INVALID_ARGUMENT");
    expect(() => parseDistinguishedName(text)).toThrow(word);
  });

  it("is parsed in linear time", () => {
    for (const part of ["\\", "\\\\", ",", "=", "\\,", " "])
      expect(() => parseDistinguishedName(`CN=${part.repeat(10_000)}`)).toThrow();
  });
});
