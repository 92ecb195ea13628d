import { createHash, createPublicKey, X509Certificate } from "node:crypto";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { Certificate, TimeType } from "pkijs";
import { describe, expect, it } from "vitest";
import {
  type CertificateAlgorithm,
  type CertificateAndKey,
  createAuthority,
  issueServerCertificate,
  openAuthority,
  type ServerCertificateInput,
} from "../../src/crypto/x509.ts";
import { refusal } from "./refusal.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const algorithms: readonly CertificateAlgorithm[] = ["ECDSA-P256", "ML-DSA-65"];

/** A CA and a server certificate that it issued, as PEM. */
function makeChain(algorithm: CertificateAlgorithm, input: Partial<ServerCertificateInput> = {}) {
  const ca = createAuthority(algorithm, now);
  return { ca, server: issueServer(ca, input) };
}

function issueServer(ca: CertificateAndKey, input: Partial<ServerCertificateInput> = {}): CertificateAndKey {
  return issueServerCertificate(openAuthority(ca), { names: ["gateway.test"], days: 90, now, ...input });
}

function read({ certificatePem }: CertificateAndKey): X509Certificate {
  return new X509Certificate(certificatePem);
}

/** Validity in ISO 8601. */
function validityOf(pair: CertificateAndKey): readonly string[] {
  const { validFromDate, validToDate } = read(pair);
  return [validFromDate, validToDate].map((date) => date.toISOString());
}

/** Parts of a certificate (RFC 5280, section 4.1). */
function partsOf(pair: CertificateAndKey) {
  const certificate = Certificate.fromBER(read(pair).raw);
  const { signatureAlgorithm, signature, signatureValue, subjectPublicKeyInfo } = certificate;
  return {
    tbs: certificate.tbsView,
    algorithmIdentifiers: [signatureAlgorithm, signature, subjectPublicKeyInfo.algorithm].map((identifier) =>
      Buffer.from(identifier.toSchema().toBER()).toString("hex"),
    ),
    signature: signatureValue.valueBlock.valueHexView,
    publicKey: subjectPublicKeyInfo.subjectPublicKey.valueBlock.valueHexView,
  };
}

/** Extensions by object identifier: whether critical, and the bytes of the value. */
function extensionsOf(pair: CertificateAndKey) {
  const { extensions = [] } = Certificate.fromBER(read(pair).raw);
  return Object.fromEntries(
    extensions.map(({ extnID, critical, extnValue }) => [
      extnID,
      { critical, value: extnValue.valueBlock.valueHexView.toHex() },
    ]),
  );
}

/** The key identifier from RFC 7093, section 2, method 1. */
function keyIdentifierOf(pair: CertificateAndKey): string {
  return createHash("sha256").update(partsOf(pair).publicKey).digest("hex").slice(0, 40);
}

describe.each(algorithms)("a %s CA", (algorithm) => {
  const ca = createAuthority(algorithm, now);

  it("is self-signed", () => {
    const certificate = read(ca);
    expect(certificate.checkIssued(certificate)).toBe(true);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
  });

  it("is valid for ten years, starting ten minutes before its creation", () => {
    expect(validityOf(ca)).toEqual(["2026-03-01T11:50:00.000Z", "2036-03-01T12:00:00.000Z"]);
  });

  it("may sign server certificates and CRLs but no sub-CA, and identifies its key", () => {
    expect(extensionsOf(ca)).toEqual({
      "2.5.29.19": { critical: true, value: "30060101ff020100" }, // basicConstraints: cA, pathLen 0
      "2.5.29.15": { critical: true, value: "03020106" }, // keyUsage: keyCertSign, cRLSign
      "2.5.29.14": { critical: false, value: `0414${keyIdentifierOf(ca)}` }, // subjectKeyIdentifier
    });
  });

  it("has a unique name", () => {
    expect(read(ca).subject).toMatch(new RegExp(`^CN=Quantum-Safe Playground CA ${algorithm} [0-9a-f]{8}$`));
    expect(read(ca).subject).not.toBe(read(createAuthority(algorithm, now)).subject);
  });
});

describe.each(algorithms)("a %s server certificate", (algorithm) => {
  it("is signed by its CA and no other, has the first name as its subject, and comes with its key", () => {
    const { ca, server } = makeChain(algorithm, { names: ["first.test", "second.test"] });
    expect(read(server).subject).toBe("CN=first.test");
    expect(read(server).checkIssued(read(ca))).toBe(true);
    expect(read(server).verify(read(ca).publicKey)).toBe(true);
    expect(read(server).verify(read(createAuthority(algorithm, now)).publicKey)).toBe(false);
    expect(read(server).publicKey.equals(createPublicKey(server.secretKeyPem))).toBe(true);
  });

  it("has no subject if the first name is too long for one, and critical names then (RFC 5280, A.1, 4.2.1.6)", () => {
    const names = ["a", "aa"].map((last) => `${"a".repeat(50)}.${last}.long.example`);
    expect(names[0]).toHaveLength(65);
    const subjects = [[names[0]?.slice(1) ?? "", names[0] ?? ""], names].map(
      (given) => read(makeChain(algorithm, { names: given }).server).subject,
    );
    expect(subjects).toEqual([`CN=${names[0]?.slice(1)}`, undefined]);
    const { server } = makeChain(algorithm, { names });
    expect(extensionsOf(server)["2.5.29.17"]).toMatchObject({ critical: true });
    expect(names.map((name) => read(server).checkHost(name))).toEqual(names);
  });

  it("is for servers only, and identifies its key and its CA's key", () => {
    const { ca, server } = makeChain(algorithm, { names: ["a.test", "127.0.0.1"] });
    expect(extensionsOf(server)).toEqual({
      "2.5.29.19": { critical: true, value: "3000" }, // basicConstraints: no CA
      "2.5.29.15": { critical: true, value: "03020780" }, // keyUsage: digitalSignature
      "2.5.29.37": { critical: false, value: "300a06082b06010505070301" }, // extKeyUsage: serverAuth
      "2.5.29.17": { critical: false, value: "300e8206612e7465737487047f000001" }, // subjectAltName
      "2.5.29.14": { critical: false, value: `0414${keyIdentifierOf(server)}` },
      "2.5.29.35": { critical: false, value: `30168014${keyIdentifierOf(ca)}` }, // authorityKeyIdentifier
    });
  });

  it("is valid for the requested days, starting ten minutes before its creation", () => {
    const { server } = makeChain(algorithm, { days: 7 });
    expect(validityOf(server)).toEqual(["2026-03-01T11:50:00.000Z", "2026-03-08T12:00:00.000Z"]);
  });

  it("expires with its CA at the latest", () => {
    const { ca } = makeChain(algorithm);
    const late = issueServer(ca, { now: new Date("2036-02-28T00:00:00.000Z") });
    expect(read(late).validToDate).toEqual(read(ca).validToDate);
  });

  it.each([
    ["has ended", "2036-03-01T12:00:00.000Z"],
    ["is not yet valid", "2026-03-01T11:49:59.000Z"],
  ])("is rejected by a CA that %s", async (_what, time) => {
    const ca = createAuthority(algorithm, now);
    expect(await refusal(() => issueServer(ca, { now: new Date(time) }))).toBe("INVALID_ARGUMENT");
  });

  it("has a new key and a new, positive 128-bit serial number each time", () => {
    const { ca } = makeChain(algorithm);
    const servers = Array.from({ length: 20 }, () => issueServer(ca));
    const numbers = servers.map((server) => read(server).serialNumber);
    // A negative number would start with a minus. 128 random bits start with 40 zeros once in a million
    // million.
    for (const number of numbers) expect(number).toMatch(/^[0-9A-F]{23,32}$/);
    expect(new Set(numbers).size).toBe(20);
    expect(new Set(servers.map(keyIdentifierOf)).size).toBe(20);
  });

  it("writes years from 2050 on with four digits", () => {
    const ca = createAuthority(algorithm, new Date("2045-01-01T00:00:00.000Z"));
    const { notBefore, notAfter } = Certificate.fromBER(read(ca).raw);
    expect([notBefore.type, notAfter.type]).toEqual([TimeType.UTCTime, TimeType.GeneralizedTime]);
    expect(validityOf(ca)[1]).toBe("2055-01-01T00:00:00.000Z");
  });
});

describe("an ML-DSA-65 certificate", () => {
  it("has the algorithm without parameters in all three places (RFC 9881, sections 2 and 4)", () => {
    const identifier = "300b0609608648016503040312";
    const { ca, server } = makeChain("ML-DSA-65");
    expect(partsOf(ca).algorithmIdentifiers).toEqual([identifier, identifier, identifier]);
    expect(partsOf(server).algorithmIdentifiers).toEqual([identifier, identifier, identifier]);
  });

  it("is signed without a context, as a second implementation of FIPS 204 confirms", () => {
    const { ca, server } = makeChain("ML-DSA-65");
    const { tbs, signature } = partsOf(server);
    expect(ml_dsa65.verify(signature, tbs, partsOf(ca).publicKey)).toBe(true);
  });
});

describe("an ECDSA-P256 certificate", () => {
  it("has ecdsa-with-SHA256 without parameters, and the key with its curve (RFC 5758, 3.2; RFC 5480, 2.1.1)", () => {
    const signature = "300a06082a8648ce3d040302";
    const key = "301306072a8648ce3d020106082a8648ce3d030107";
    expect(partsOf(makeChain("ECDSA-P256").server).algorithmIdentifiers).toEqual([signature, signature, key]);
  });
});

describe("a certificate's names", () => {
  it("match host names below a wildcard, one label deep", () => {
    const { server } = makeChain("ECDSA-P256", { names: ["*.a.test"] });
    const fits = ["b.a.test", "a.test", "c.b.a.test"].map((host) => read(server).checkHost(host));
    expect(fits).toEqual(["*.a.test", undefined, undefined]);
  });
});

describe("a CA that is read", () => {
  const { ca, server } = makeChain("ECDSA-P256");
  const other = createAuthority("ECDSA-P256", now);
  const postQuantum = createAuthority("ML-DSA-65", now);
  const publicKeyPem = String(createPublicKey(ca.secretKeyPem).export({ type: "spki", format: "pem" }));
  const bad: Readonly<Record<string, CertificateAndKey>> = {
    "a certificate that is not one": { ...ca, certificatePem: "no certificate" },
    "a key that is not one": { ...ca, secretKeyPem: "no key" },
    "a public key instead of its secret key": { ...ca, secretKeyPem: publicKeyPem },
    "a different CA's key": { ...ca, secretKeyPem: other.secretKeyPem },
    "a key of a different algorithm": { ...ca, secretKeyPem: postQuantum.secretKeyPem },
    "a server certificate": server,
  };
  it.each(Object.entries(bad))("is rejected with %s", async (_what, pair) => {
    expect(await refusal(() => openAuthority(pair))).toBe("INVALID_KEY");
  });
});
