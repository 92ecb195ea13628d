/** The only PEM parser: every BEGIN line yields a block or an error. */
import { describe, expect, it } from "vitest";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import {
  decodePem,
  decodePemBlock,
  encodePem,
  findCertificateBlocks,
  findPemBlocks,
  isPem,
} from "../../src/crypto/pem.ts";

const der = Uint8Array.from({ length: 100 }, (_, i) => i);
const block = encodePem("PUBLIC KEY", der);
const other = encodePem("CERTIFICATE", der);
const [begin = "", firstLine = ""] = block.split("\n");

describe("the PEM parser", () => {
  it.each([
    ["text before it", `Subject: CN=test\n\n${block}`],
    ["text after it", `${block}\nSubject: CN=test\n`],
    ["a byte order mark", `\uFEFF${block}`],
    ["trailing spaces and tabs", block.replaceAll("\n", " \t\n")],
    ["CR LF line endings", block.replaceAll("\n", "\r\n")],
    ["CR line endings", block.replaceAll("\n", "\r")],
    ["no final line break", block.trimEnd()],
    ["one long line", block.replaceAll(/\n(?!-)/g, "").replace("KEY-----", "KEY-----\n")],
  ])("reads a block with %s", (_, text) => {
    expect(decodePem("PUBLIC KEY", text)).toEqual(der);
  });

  it("reads all blocks in order, with their labels and lines", () => {
    const blocks = findPemBlocks(`${block}text\n${other}`);
    expect(blocks).toMatchObject([
      { label: "PUBLIC KEY", line: 1 },
      { label: "CERTIFICATE", line: 7 },
    ]);
    expect(blocks.map(decodePemBlock)).toEqual([der, der]);
  });

  it.each([
    ["no block", "hello\n", "no PEM block; expected -----BEGIN PUBLIC KEY----- and its END line"],
    ["two blocks", block + other, "2 PEM blocks (PUBLIC KEY in line 1, CERTIFICATE in line 6); expected one"],
    ["a block with another label", other, "the PEM block is labelled CERTIFICATE; expected PUBLIC KEY"],
    ["UTF-16", Buffer.from(block, "utf16le").toString("utf8"), "the text is in UTF-16; save it as UTF-8"],
    [
      "UTF-16 in big endian",
      Buffer.from(`\uFEFF${block}`, "utf16le").swap16().toString(),
      "the text is in UTF-16",
    ],
    ["no END line", `${begin}\n${firstLine}\n`, "the PUBLIC KEY in line 1 has no END line"],
    ["a block without END before the next", `${begin}\n${block}`, "the PUBLIC KEY in line 1 has no END line"],
    [
      "unequal labels",
      block.replace("END PUBLIC", "END RSA"),
      "the PUBLIC KEY in line 1 ends with END RSA KEY",
    ],
    ["no BEGIN line", block.slice(begin.length), "line 5 ends a PUBLIC KEY block that never began"],
    [
      "an encrypted block",
      encodePem("ENCRYPTED PRIVATE KEY", der),
      "in line 1 is encrypted; decrypt it first",
    ],
    [
      "encryption headers",
      block.replace("\n", "\nProc-Type: 4,ENCRYPTED\n\n"),
      "in line 1 is encrypted; decrypt it",
    ],
    ["other headers", block.replace("\n", "\nComment: x\n\n"), "the PUBLIC KEY in line 1 has headers, which"],
    ["an empty block", `${begin}\n\n-----END PUBLIC KEY-----\n`, "the PUBLIC KEY in line 1 is empty"],
    ["a space in the base64", block.replace("AAEC", "AA EC"), "the PUBLIC KEY in line 1 is not valid base64"],
    ["no padding", block.replaceAll("=", ""), "the PUBLIC KEY in line 1 is not valid base64"],
    ["an indented BEGIN line", `  ${block}`, "line 1 is not a whole BEGIN or END line"],
    ["escaped line breaks", block.replaceAll("\n", "\\n"), "line 1 is not a whole BEGIN or END line"],
    ["a lower-case BEGIN line", block.toLowerCase(), "line 1 is not a whole BEGIN or END line"],
    ["too many characters", "x".repeat(16_385), "the PEM text has 16385 characters; the limit is 16384"],
  ])("rejects %s with a clear message", (_, text, message) => {
    expect(() => decodePem("PUBLIC KEY", text)).toThrow(message);
  });

  it("never skips an unreadable block", () => {
    const damages: ((text: string) => string)[] = [
      (text) => text.replace("\n", "\n?"),
      (text) => text.replace("-----BEGIN", "-----BEGIN OLD"),
      (text) => text.replace("-----BEGIN", "--- BEGIN"),
      (text) => text.replace("-----END", "----END"),
      (text) => text.replace("-----\n", "----- x\n"),
      (text) => text.replace(/-----END.*\n/, ""),
      (text) => text.replace(/-----BEGIN.*\n/, ""),
      (text) => text.replace("\n", "\nx: y\n"),
    ];
    for (const damage of damages)
      expect(
        () => findCertificateBlocks(damage(other) + other, 1000).map(decodePemBlock),
        `${damage}`,
      ).toThrow(CryptoError);
  });

  it("reads the certificates among other blocks, and rejects one with OpenSSL trust settings", () => {
    const labels = ["PRIVATE KEY", "CERTIFICATE", "X509 CERTIFICATE", "X509 CRL"];
    const text = labels.map((label, i) => encodePem(label, Uint8Array.of(i))).join("");
    expect(findCertificateBlocks(text, 1000).map(decodePemBlock)).toEqual([
      Uint8Array.of(1),
      Uint8Array.of(2),
    ]);
    const trusted = encodePem("TRUSTED CERTIFICATE", der) + other;
    expect(() => findCertificateBlocks(trusted, 1000)).toThrow("openssl x509 -in FILE -out NEW");
  });

  it.each([
    ["PEM", Buffer.from(block), true],
    ["PEM after text", Buffer.from(`Grüße\r\n\t${block}`, "latin1"), true],
    ["PEM after text that starts with the first byte of DER", Buffer.from(`0 s:CN=test\n${block}`), true],
    ["PEM in UTF-16", Buffer.from(`\uFEFF${block}`, "utf16le"), true],
    ["DER", Buffer.of(0x30, 2, 2, 0), false],
    ["DER that contains PEM", Buffer.from(`0\x81\xc8\x02\x01\x00\x04\xbe${block}`, "latin1"), false],
    ["an empty file", Buffer.of(), false],
  ])("detects from the bytes whether a file is PEM: %s", (_, file, expected) => {
    expect(isPem(file)).toBe(expected);
  });
});
