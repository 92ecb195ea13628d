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
  const { certificatePem: certificate, secretKeyPem: key } = pair;

  it.each<[what: string, input: Parameters<typeof read>[0]]>([
    ["text before and after it", { certificate: `Subject: CN=x\n\n${certificate}end\n` }],
    ["spaces at the end of its lines", { certificate: certificate.replaceAll("\n", " \n") }],
    ["CRLF line endings", { certificate: certificate.replaceAll("\n", "\r\n") }],
    ["a byte order mark", { certificate: `\uFEFF${certificate}` }],
    ["the label used by older programs", { certificate: encodePem("X509 CERTIFICATE", der(certificate)) }],
    ["its key in the same file", { certificate: key + certificate }],
    ["a key with CRLF line endings", { key: key.replaceAll("\n", "\r\n") }],
    ["a key in the older SEC1 form", { key: exportKey("sec1") }],
    ["a key after its parameters, as written by openssl ecparam", { key: parameters + exportKey("sec1") }],
    ["a key next to its certificate", { key: key + certificate }],
  ])("are accepted with %s", (_, input) => {
    const options = read(input);
    expect(options.cert.map((pem) => der(String(pem)))).toEqual([der(certificate)]);
    expect(options.key).toHaveLength(1);
  });

  it("yield the whole chain in its order", () => {
    const { cert } = read({ certificate: certificate + rest });
    expect(String(cert[0]).match(/BEGIN/g)).toHaveLength(2);
    expect(der(String(cert[0]))).toEqual(der(certificate));
  });

  const longer = encodePem("CERTIFICATE", Buffer.concat([der(certificate), Buffer.of(0)]));
  // Followed by another certificate, which OpenSSL would use.
  it.each<[what: string, certificate: string | Uint8Array, message: RegExp]>([
    ["an indented BEGIN line", indent(another.certificatePem) + certificate, /crt: line 1 is not a whole/],
    ["an indented BEGIN line in its chain", certificate + indent(rest), /crt: line \d+ is not a whole/],
    ["four dashes", another.certificatePem.slice(1) + certificate, /crt: line 1 is not a whole/],
    [
      "a non-certificate block before it",
      junk + certificate,
      /crt: .* line 1 is not an X\.509 certificate; export/,
    ],
    [
      "a non-certificate block in its chain",
      certificate + junk,
      /crt: .* line \d+ is not an X\.509 certificate/,
    ],
    ["bytes after it", longer, /crt: .* line 1 is not an X\.509 certificate/],
    [
      "trust settings",
      encodePem("TRUSTED CERTIFICATE", der(certificate)),
      /crt: .*openssl x509 -in FILE -out/,
    ],
    ["UTF-16", utf16(certificate), /crt: .*UTF-16; save it as UTF-8/],
    ["DER", der(certificate), /crt: no certificate in PEM.*openssl x509 -in FILE -out NEW/],
    ["a key instead", key, /crt: 1 PEM block \(PRIVATE KEY in line 1\), and no certificate/],
    ["no bytes", "", /crt: no certificate in PEM/],
    ["no PEM", "this is no PEM\n", /crt: no certificate in PEM/],
  ])("are refused with a certificate that has %s", (_, certificate, message) => {
    expect(() => read({ certificate })).toThrow(message);
  });

  const broken = key.replace(/\n[^\n]{8}/, "\n!!!!!!!!");
  it.each<[what: string, key: string | Uint8Array, message: RegExp]>([
    ["that is a certificate", certificate, /key: 1 PEM block \(CERTIFICATE in line 1\), and no private key/],
    ["with an indented BEGIN line", indent(another.secretKeyPem) + key, /key: line 1 is not a whole/],
    [
      "next to another",
      key + another.secretKeyPem,
      /key: 2 PEM blocks \(PRIVATE KEY in line 1, PRIVATE KEY in/,
    ],
    ["in UTF-16", utf16(key), /key: .*UTF-16; save it as UTF-8/],
    ["that is encrypted", exportKey("pkcs8", "passphrase"), /key: .*is encrypted; decrypt it first/],
    [
      "that is encrypted in the older form",
      exportKey("sec1", "passphrase"),
      /key: .*is encrypted; decrypt it first/,
    ],
    ["that is not PEM", "this is no PEM\n", /key: /],
    ["that is broken", broken, /key: the PRIVATE KEY in line 1 is not valid base64/],
    [
      "that is none",
      encodePem("PRIVATE KEY", Uint8Array.of(1)),
      /key: .*is not a private key that OpenSSL can read/,
    ],
    [
      "of OpenSSH",
      encodePem("OPENSSH PRIVATE KEY", Uint8Array.of(1)),
      /key: the OPENSSH .* line 1 .*openssl pkey/,
    ],
    ["of another certificate", another.secretKeyPem, /key does not contain the key of .*server\.crt/],
  ])("are refused with a key %s", (_, key, message) => {
    expect(() => read({ key })).toThrow(message);
  });

  it.each(["certificate", "key"] as const)("are refused if the %s is missing or a directory", (which) => {
    const directory = makeTemporaryDirectory();
    const good = join(directory, "good.pem");
    writeFileSync(good, key + certificate);
    for (const bad of [join(directory, "nowhere"), directory])
      expect(() => readTlsOptions([{ certificate: good, key: good, [which]: bad }])).toThrow(bad);
  });
});
