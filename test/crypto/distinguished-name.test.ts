import { describe, expect, it } from "vitest";
import {
  type DistinguishedName,
  formatDistinguishedName,
  parseDistinguishedName,
} from "../../src/crypto/distinguished-name.ts";
import { refusal } from "./refusal.ts";

const read: Record<string, DistinguishedName> = {
  "": [],
  "CN=release,O=Example": [
    { type: "O", value: "Example" },
    { type: "CN", value: "release" },
  ],
  "cn=release": [{ type: "CN", value: "release" }],
  "CN=a=b": [{ type: "CN", value: "a=b" }],
  "CN=Lu\\C4\\8Di\\C4\\87": [{ type: "CN", value: "Lučić" }],
  'CN=a\\,b\\+c\\"d\\<e\\>f\\;g\\\\h': [{ type: "CN", value: 'a,b+c"d<e>f;g\\h' }],
  "CN=\\#1": [{ type: "CN", value: "#1" }],
  "CN=a\\\\,O=b": [
    { type: "O", value: "b" },
    { type: "CN", value: "a\\" },
  ],
  "CN=a\\2CO\\3Db": [{ type: "CN", value: "a,O=b" }],
  "OU=x,OU=y,DC=example,DC=com": [
    { type: "DC", value: "com" },
    { type: "DC", value: "example" },
    { type: "OU", value: "y" },
    { type: "OU", value: "x" },
  ],
  "CN=😀": [{ type: "CN", value: "😀" }],
  [`CN=${"😀".repeat(64)}`]: [{ type: "CN", value: "😀".repeat(64) }],
  "UID=ada,STREET=1 Main St,L=Bonn,ST=NRW,C=DE": [
    { type: "C", value: "DE" },
    { type: "ST", value: "NRW" },
    { type: "L", value: "Bonn" },
    { type: "STREET", value: "1 Main St" },
    { type: "UID", value: "ada" },
  ],
};

/** Invalid names, each with a word from the message. */
const refused: Record<string, [string, string]> = {
  "no type": ["release", "TYPE=value"],
  "an unknown type": ["EMAIL=a@b.test", "EMAIL"],
  "an object identifier as the type": ["2.5.4.3=release", "2.5.4.3"],
  "a space after a comma": ["CN=release, O=Example", "space"],
  "a space before =": ["CN =release", "space"],
  "an empty part": ["CN=release,,O=Example", "TYPE=value"],
  "a comma at the end": ["CN=release,", "TYPE=value"],
  "an empty value": ["CN=", "0 characters"],
  "a long value": [`CN=${"a".repeat(65)}`, "65 characters"],
  "two attributes in one part": ["CN=a+O=b", "+"],
  "a quote": ['CN="a"', '"'],
  "a semicolon between parts": ["CN=a;O=b", ";"],
  "a hexadecimal value": ["CN=#0c0161", "hexadecimal"],
  "a backslash at the end": ["CN=a\\", "backslash"],
  "three backslashes at the end": ["CN=a\\\\\\", "backslash"],
  "a backslash before a letter": ["CN=\\z", "backslash"],
  "an escaped NUL": ["CN=a\\00b", "control"],
  "an escaped line end": ["CN=a\\0Ab", "control"],
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
  "an overlong byte sequence": ["CN=\\C0\\AF", "UTF-8"],
  "a space at the beginning": ["CN= a", "space"],
  "a space at the end": ["CN=a ", "space"],
  "an escaped space at the end": ["CN=a\\ ", "space"],
  "two common names": ["CN=a,CN=b", "twice"],
  "two countries": ["C=DE,C=FR", "twice"],
  "a country of three letters": ["C=DEU", "3 characters"],
  "a lower-case country": ["C=de", "capital"],
  "a domain component with a dot": ["DC=example.com", "host name"],
  "17 parts": [Array(17).fill("OU=a").join(), "17 parts"],
};

describe("a distinguished name", () => {
  it.each(Object.entries(read))("is parsed from %j, the most general part first", (text, name) => {
    expect(parseDistinguishedName(text)).toEqual(name);
  });

  it.each(Object.values(read))("%j survives formatting and parsing", (...name) => {
    const parts = name.flat();
    expect(parseDistinguishedName(formatDistinguishedName(parts))).toEqual(parts);
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
