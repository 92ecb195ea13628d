/**
 * The server's certificate and key files: OpenSSL would skip a block that it cannot read and use the next
 * one.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodePem } from "../../src/crypto/pem.ts";
import { createAuthority, issueServerCertificate, openAuthority } from "../../src/crypto/x509.ts";
import { readTlsOptions } from "../../src/server/tls.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const now = new Date();
const authority = openAuthority(createAuthority("ECDSA-P256", now));
const issue = () => issueServerCertificate(authority, { names: ["localhost"], days: 2, now });
const pair = issue();
const another = issue();
const rest = authority.certificate.toString();
const der = (pem: string): Uint8Array => new X509Certificate(pem).raw;
const junk = encodePem("CERTIFICATE", Uint8Array.of(1, 2, 3));
const secretKey = createPrivateKey(pair.secretKeyPem);
const exportKey = (type: "pkcs8" | "sec1", passphrase?: string): string =>
  String(
    secretKey.export({
      type,
      format: "pem",
      ...(passphrase !== undefined && { cipher: "aes-256-cbc", passphrase }),
    }),
  );
const parameters = encodePem("EC PARAMETERS", Buffer.from("06082a8648ce3d030107", "hex"));
const indent = (pem: string): string => pem.replace("-----BEGIN", " -----BEGIN");
const utf16 = (pem: string): Buffer => Buffer.from(`\uFEFF${pem}`, "utf16le");

/**
 * Reads a pair from files.
 *
 * @param input replaces the contents of the files
 */
function read(input: { certificate?: string | Uint8Array; key?: string | Uint8Array }) {
  const directory = makeTemporaryDirectory();
  const files = { certificate: join(directory, "server.crt"), key: join(directory, "server.key") };
  writeFileSync(files.certificate, input.certificate ?? pair.certificatePem);
  writeFileSync(files.key, input.key ?? pair.secretKeyPem);
  return readTlsOptions([files]);
}

describe("the files of --tls-cert and --tls-key", () => {
  it.each([
    ["text before and after it", { certificate: `Subject: CN=x\n\n${pair.certificatePem}end\n` }],
    ["spaces at the end of its lines", { certificate: pair.certificatePem.replaceAll("\n", " \n") }],
    ["CRLF line endings", { certificate: pair.certificatePem.replaceAll("\n", "\r\n") }],
    ["a byte order mark", { certificate: `\uFEFF${pair.certificatePem}` }],
    [
      "the label used by older programs",
      { certificate: encodePem("X509 CERTIFICATE", der(pair.certificatePem)) },
    ],
    ["its key in the same file", { certificate: pair.secretKeyPem + pair.certificatePem }],
    ["a key with CRLF line endings", { key: pair.secretKeyPem.replaceAll("\n", "\r\n") }],
    ["a key in the older SEC1 form", { key: exportKey("sec1") }],
    ["a key after its parameters, as written by openssl ecparam", { key: parameters + exportKey("sec1") }],
    ["a key next to its certificate", { key: pair.secretKeyPem + pair.certificatePem }],
  ])("are accepted with %s", (_, input) => {
    const { cert, key } = read(input);
    expect(cert.map((pem) => der(String(pem)))).toEqual([der(pair.certificatePem)]);
    expect(key).toHaveLength(1);
  });

  it("yield the whole chain in its order", () => {
    const { cert } = read({ certificate: pair.certificatePem + rest });
    expect(String(cert[0]).match(/BEGIN/g)).toHaveLength(2);
    expect(der(String(cert[0]))).toEqual(der(pair.certificatePem));
  });

  // Followed by another certificate or key, which OpenSSL would use.
  it.each([
    [
      "an indented BEGIN line",
      { certificate: indent(another.certificatePem) + pair.certificatePem },
      /server\.crt: line 1 is not a whole BEGIN or END line/,
    ],
    [
      "an indented BEGIN line in its chain",
      { certificate: pair.certificatePem + indent(rest) },
      /server\.crt: line \d+ is not a whole BEGIN or END line/,
    ],
    [
      "four dashes",
      { certificate: another.certificatePem.slice(1) + pair.certificatePem },
      /server\.crt: line 1 is not a whole BEGIN or END line/,
    ],
    [
      "a non-certificate block before it",
      { certificate: junk + pair.certificatePem },
      /server\.crt: the CERTIFICATE in line 1 is not an X\.509 certificate; export it again/,
    ],
    [
      "a non-certificate block in its chain",
      { certificate: pair.certificatePem + junk },
      /server\.crt: the CERTIFICATE in line \d+ is not an X\.509 certificate/,
    ],
    [
      "bytes after its certificate",
      { certificate: encodePem("CERTIFICATE", Buffer.concat([der(pair.certificatePem), Buffer.of(0)])) },
      /server\.crt: the CERTIFICATE in line 1 is not an X\.509 certificate/,
    ],
    [
      "OpenSSL trust settings",
      { certificate: encodePem("TRUSTED CERTIFICATE", der(pair.certificatePem)) },
      /server\.crt: .*openssl x509 -in FILE -out NEW/,
    ],
    ["UTF-16", { certificate: utf16(pair.certificatePem) }, /server\.crt: .*UTF-16; save it as UTF-8/],
    [
      "DER",
      { certificate: der(pair.certificatePem) },
      /server\.crt: no certificate in PEM.*openssl x509 -in FILE -out NEW/,
    ],
    [
      "key and certificate swapped",
      { certificate: pair.secretKeyPem, key: pair.certificatePem },
      /server\.crt: 1 PEM block \(PRIVATE KEY in line 1\), and no certificate/,
    ],
    [
      "a certificate instead of a key",
      { key: pair.certificatePem },
      /server\.key: 1 PEM block \(CERTIFICATE in line 1\), and no private key/,
    ],
    [
      "an indented BEGIN line in the key",
      { key: indent(another.secretKeyPem) + pair.secretKeyPem },
      /server\.key: line 1 is not a whole BEGIN or END line/,
    ],
    [
      "two keys",
      { key: pair.secretKeyPem + another.secretKeyPem },
      /server\.key: 2 PEM blocks \(PRIVATE KEY in line 1, PRIVATE KEY in line \d+\); expected one private key/,
    ],
    ["a key in UTF-16", { key: utf16(pair.secretKeyPem) }, /server\.key: .*UTF-16; save it as UTF-8/],
    [
      "an encrypted key",
      { key: exportKey("pkcs8", "passphrase") },
      /server\.key: .*is encrypted; decrypt it first/,
    ],
    [
      "an encrypted key in the older PEM form",
      { key: exportKey("sec1", "passphrase") },
      /server\.key: .*is encrypted; decrypt it first/,
    ],
    ["no bytes", { certificate: "" }, /server\.crt: no certificate in PEM/],
    ["no PEM", { certificate: "this is no PEM\n" }, /server\.crt: no certificate in PEM/],
    ["a key that is not PEM", { key: "this is no PEM\n" }, /server\.key: /],
    [
      "a broken key",
      { key: pair.secretKeyPem.replace(/\n[^\n]{8}/, "\n!!!!!!!!") },
      /server\.key: the PRIVATE KEY in line 1 is not valid base64/,
    ],
    [
      "a block that is not a key",
      { key: encodePem("PRIVATE KEY", Uint8Array.of(1)) },
      /server\.key: the PRIVATE KEY in line 1 is not a private key that OpenSSL can read/,
    ],
    [
      "an OpenSSH key",
      { key: encodePem("OPENSSH PRIVATE KEY", Uint8Array.of(1)) },
      /server\.key: the OPENSSH PRIVATE KEY in line 1 .*openssl pkey/,
    ],
    ["another's key", { key: another.secretKeyPem }, /server\.key does not contain the key of .*server\.crt/],
  ])("are refused with %s", (_, input, message) => {
    expect(() => read(input)).toThrow(message);
  });

  it.each(["certificate", "key"] as const)("are refused if the %s is missing or a directory", (which) => {
    const directory = makeTemporaryDirectory();
    const good = join(directory, "good.pem");
    writeFileSync(good, pair.secretKeyPem + pair.certificatePem);
    for (const bad of [join(directory, "nowhere"), directory])
      expect(() => readTlsOptions([{ certificate: good, key: good, [which]: bad }])).toThrow(bad);
  });
});
