/** `ca issue --csr`: which parts of a CSR reach the certificate, and what the operator must specify. */
import { createPublicKey, X509Certificate } from "node:crypto";
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Certificate } from "pkijs";
import { describe, expect, it } from "vitest";
import { encodePem } from "../../../src/crypto/pem.ts";
import { certificateIn, contentOf, makeAuthority, qsp } from "../../../test/cli/operator/authority.ts";
import {
  ascii,
  asking,
  der,
  extension,
  hex,
  makeRequest,
  makeRequestKey,
  mldsaKey,
  oids,
} from "../../../test/crypto/requests.ts";
import { runToEndHere } from "../../../test/support/run-here.ts";

const timeout = 180_000;

const names = [der(0x82, ascii("a.test")), der(0x87, hex("0a000001")), der(0x81, ascii("ada@a.test"))];
/** A CSR that asks to become a CA that signs certificates, for any purpose. */
const greedy = makeRequest({
  attributes: [
    asking(
      extension(oids.subjectAltName, der(0x30, ...names)),
      extension(oids.basicConstraints, hex("30030101ff"), hex("0101ff")),
      extension(oids.keyUsage, hex("03020106")),
    ),
  ],
});

interface Place {
  readonly dataDir: string;
  readonly csr: string;
  readonly out: string;
}

/** A CA, and a CSR file next to it. */
async function place(request: Uint8Array | string = greedy): Promise<Place> {
  const dataDir = await makeAuthority();
  const csr = join(dataDir, "request.csr");
  writeFileSync(csr, request);
  return { dataDir, csr, out: join(dataDir, "release.crt") };
}

const issue = ({ dataDir, csr, out }: Place, ...args: string[]): Promise<string> =>
  qsp(dataDir, "ca", "issue", "--csr", csr, "--out", out, ...args);

const read = ({ out }: Place): X509Certificate => new X509Certificate(readFileSync(out));

/** Extensions by object identifier: whether critical, and the bytes of the value. */
function extensionsOf(certificate: X509Certificate): Record<string, [boolean, string]> {
  const { extensions = [] } = Certificate.fromBER(certificate.raw);
  return Object.fromEntries(
    extensions.map(({ extnID, critical, extnValue }) => [
      extnID,
      [critical, extnValue.valueBlock.valueHexView.toHex()],
    ]),
  );
}

/** The error message of a rejected command line. */
async function refused(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runToEndHere(["ca", "issue", ...args], {});
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(/^qsp: [^\n]+\n$/);
  return stderr;
}

/** The error message of a rejected request. */
const refusedIn = ({ dataDir, csr, out }: Place, ...args: string[]): Promise<string> =>
  refused("--csr", csr, "--out", out, "--data-dir", dataDir, ...args);

/** Options that suffice for a request with a subject. */
const sufficient = ["--copy", "subject", "--purpose", "code"];

describe("ca issue --csr", { timeout }, () => {
  it("copies only subject and names, and grants nothing else that is requested", async () => {
    const there = await place();
    const text = await issue(there, "--copy", "subject", "--copy", "names", "--purpose", "code");
    const certificate = read(there);
    expect(certificate.subject).toBe("CN=release");
    expect(certificate.ca).toBe(false);
    expect(extensionsOf(certificate)).toMatchObject({
      "2.5.29.19": [true, "3000"], // basicConstraints: no CA
      "2.5.29.15": [true, "03020780"], // keyUsage: digitalSignature
      "2.5.29.37": [false, "300a06082b06010505070303"], // extKeyUsage: codeSigning
      "2.5.29.17": [false, "301a8206612e7465737487040a000001810a61646140612e74657374"],
    });
    expect(Object.keys(extensionsOf(certificate))).toHaveLength(6);
    expect(text).toMatch(/^left out +extension or attribute 2\.5\.29\.19, .*2\.5\.29\.15$/m);
  });

  it("certifies a post-quantum key under the ML-DSA-65 CA", async () => {
    const there = await place();
    await issue(there, ...sufficient);
    const ca = certificateIn(there.dataDir, "ca-mldsa");
    expect(read(there).verify(ca.publicKey) && read(there).checkIssued(ca)).toBe(true);
    expect(read(there).publicKey.equals(createPublicKey(mldsaKey.secretKey))).toBe(true);
    expect(read(there).serialNumber).toMatch(/^[0-9A-F]{23,32}$/);
  });

  it("certifies an ECDSA key under the ECDSA-P256 CA", async () => {
    const there = await place(makeRequest({ key: makeRequestKey("ec", der(0x30, oids.ecdsaWithSha256)) }));
    await issue(there, "--copy", "subject", "--purpose", "client", "--purpose", "email");
    expect(read(there).verify(certificateIn(there.dataDir, "ca").publicKey)).toBe(true);
    expect(read(there).keyUsage).toEqual(["1.3.6.1.5.5.7.3.4", "1.3.6.1.5.5.7.3.2"]);
  });

  it("uses the operator's subject and names instead of the requested ones", async () => {
    const there = await place(ascii(encodePem("CERTIFICATE REQUEST", greedy)));
    const names = "--name dns:b.test --name uri:urn:example:b --purpose document".split(" ");
    const text = await issue(there, "--subject", "CN=signer,O=Example", ...names);
    expect(read(there).subject).toBe("O=Example\nCN=signer");
    expect(read(there).subjectAltName).toBe("DNS:b.test, URI:urn:example:b");
    expect(text).toMatch(/^left out +CN=release, dns:a\.test, ip:10\.0\.0\.1, email:ada@a\.test, extension/m);
  });

  it("leaves out what is neither copied nor specified, and marks names without a subject as critical", async () => {
    const there = await place();
    await issue(there, "--copy", "names", "--purpose", "server");
    expect(read(there).subject).toBeUndefined();
    expect(extensionsOf(read(there))["2.5.29.17"]?.[0]).toBe(true);
  });

  it("issues nothing without a name that the operator chose, and lists what is requested", async () => {
    const there = await place();
    const sentence = await refusedIn(there, "--purpose", "code");
    expect(sentence).toContain("CN=release, dns:a.test, ip:10.0.0.1, email:ada@a.test");
    expect(existsSync(there.out)).toBe(false);
  });

  it("lasts the requested number of days", async () => {
    const there = await place();
    await issue(there, ...sufficient, "--days", "7");
    const { validFromDate, validToDate } = read(there);
    expect((validToDate.getTime() - validFromDate.getTime()) / 60_000).toBe(7 * 24 * 60 + 10);
  });

  it("leaves the CA's files unchanged, and writes a world-readable certificate once", async () => {
    const there = await place();
    const before = contentOf(there.dataDir);
    await issue(there, ...sufficient);
    expect(contentOf(there.dataDir)).toEqual(before);
    expect((statSync(there.out).mode & 0o777).toString(8)).toBe("644");
    const certificate = readFileSync(there.out);
    expect(await refusedIn(there, ...sufficient)).toContain(there.out);
    expect(readFileSync(there.out)).toEqual(certificate);
  });

  it("does not write through a link", async () => {
    const there = await place();
    const elsewhere = join(there.dataDir, "elsewhere");
    symlinkSync(elsewhere, there.out);
    expect(await refusedIn(there, ...sufficient)).toContain(there.out);
    expect(existsSync(elsewhere)).toBe(false);
  });

  it("stops reading a file at the maximum CSR size", async () => {
    const there = { ...(await place()), csr: "/dev/zero" };
    expect(await refusedIn(there, ...sufficient)).toContain("limit");
  });

  it("rejects a request whose signature does not verify", async () => {
    const there = await place(makeRequest({ signature: () => new Uint8Array(2420) }));
    expect(await refusedIn(there, ...sufficient)).toContain("does not verify");
    expect(existsSync(there.out)).toBe(false);
  });

  /** Options that contradict each other, and a word of the message. */
  const contradictions: Record<string, [string[], string]> = {
    "a name without its kind": [["--name", "a.test"], "dns:"],
    "an invalid name": [["--name", "dns:a b"], "host name"],
    "an invalid subject": [["--subject", "release"], "--subject"],
    "both a given and a copied subject": [["--subject", "CN=a", "--copy", "subject"], "--copy subject"],
    "both given and copied names": [["--name", "dns:a.test", "--copy", "names"], "--copy names"],
    "an unknown part to copy": [["--copy", "extensions"], "subject, names"],
    "no purpose": [["--copy", "subject"], "--purpose"],
    "an unknown purpose": [["--copy", "subject", "--purpose", "ca"], "code, document"],
    "a name as an operand": [["a.test", ...sufficient], "--name dns:a.test"],
    "the option for a server's file names": [["--file", "a", ...sufficient], "--file"],
  };
  it.each(Object.entries(contradictions))("rejects %s", async (_what, [args, word]) => {
    const there = await place();
    expect(await refusedIn(there, ...args)).toContain(word);
    expect(existsSync(there.out)).toBe(false);
  });

  const ofRequests = ["--copy subject", "--purpose code", "--out x", "--name dns:a"];
  it.each(ofRequests)("rejects %s without a request", async (option) => {
    expect(await refused("localhost", ...option.split(" "))).toContain("--csr");
  });

  it("rejects a command line with neither a request nor a server name", async () => {
    expect(await refused()).toContain("NAME…");
  });
});
