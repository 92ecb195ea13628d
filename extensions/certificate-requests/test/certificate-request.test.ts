import { generateKeyPairSync } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import {
  compositeNames,
  type SignatureAlgorithm,
  signatureAlgorithms,
} from "../../../src/crypto/algorithms.ts";
import { formatAlternativeName, readAlternativeName } from "../../../src/crypto/alternative-names.ts";
import { createCertificateRequest } from "../../../src/crypto/certificate-request.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { formatDistinguishedName, parseDistinguishedName } from "../../../src/crypto/distinguished-name.ts";
import { encodePem } from "../../../src/crypto/pem.ts";
import { qsp, qspDone, qspJson, timeout, useServer } from "../../../test/cli/qsp.ts";
import { refusal } from "../../../test/crypto/refusal.ts";
import {
  ascii,
  asking,
  askingForNames,
  attribute,
  der,
  extension,
  hex,
  makeRequest,
  makeRequestKey,
  mldsaKey,
  nameOf,
  oids,
  type RequestParts,
} from "../../../test/crypto/requests.ts";
import { present } from "../../../test/services/answers.ts";
import { flipBit } from "../../../test/support/bytes.ts";
import { maxRequestFileBytes, readCertificateRequest } from "../read-certificate-request.ts";

const provider = await createCryptoProvider("openssl");
afterAll(() => provider.close());
const read = (file: Uint8Array) => readCertificateRequest(provider, file);

const algorithms = (Object.keys(signatureAlgorithms) as SignatureAlgorithm[]).filter(
  // The slow ("s") sets take a second each and differ from the fast ones only in numbers.
  (name) => !name.endsWith("s"),
);
const names = [
  readAlternativeName("dns", "*.example.com"),
  readAlternativeName("ip", "10.0.0.1"),
  readAlternativeName("ip", "2001:db8::1"),
  readAlternativeName("email", "ada@example.com"),
  readAlternativeName("uri", "spiffe://example.com/release"),
];

async function create(
  algorithm: SignatureAlgorithm,
  { subject = "CN=release,O=Example", alternativeNames = names } = {},
): Promise<Uint8Array> {
  const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
  const input = { subject: parseDistinguishedName(subject), alternativeNames, algorithm };
  return createCertificateRequest({ ...input, publicKey: publicKey.exportRaw() }, (message) =>
    provider.sign(secretKey, message),
  );
}

describe("parsing a certificate request", () => {
  it.each(algorithms)("returns the names and verifies the signature of a %s key", async (algorithm) => {
    const subject = "CN=Zoë \\, \\+ \\\\ =,OU=b,OU=a,O=Example,DC=example,DC=com,C=DE";
    const request = await read(await create(algorithm, { subject }));
    expect(request).toMatchObject({
      subject: parseDistinguishedName(subject),
      alternativeNames: names,
      algorithm,
      otherWishes: [],
    });
  });

  it("accepts a subject alone, without attributes", async () => {
    const request = await create("ML-DSA-44", { alternativeNames: [] });
    expect((await read(request)).alternativeNames).toEqual([]);
    expect(Buffer.from(request).includes(Buffer.from("a000", "hex"))).toBe(true);
  });

  it("accepts an empty subject, with the other names marked critical", async () => {
    const request = await create("ML-DSA-44", { subject: "" });
    expect(await read(request)).toMatchObject({ subject: [], alternativeNames: names });
    expect(Buffer.from(request).includes(Buffer.from("0603551d110101ff", "hex"))).toBe(true);
  });

  it("accepts PEM with either label and either line ending", async () => {
    const request = makeRequest();
    const pem = encodePem("CERTIFICATE REQUEST", request);
    const old = encodePem("NEW CERTIFICATE REQUEST", request);
    for (const text of [pem, old, pem.replaceAll("\n", "\r\n"), `\n${pem}\n`])
      expect(await read(ascii(text))).toEqual(await read(request));
  });

  it("accepts 100 names of maximum length and the longest signature", async () => {
    const uris = Array.from({ length: 100 }, (_, i) =>
      readAlternativeName("uri", `urn:${String(i).padStart(2044, "a")}`),
    );
    const request = await create("SLH-DSA-SHA2-256f", { alternativeNames: uris });
    expect((await read(ascii(encodePem("CERTIFICATE REQUEST", request)))).alternativeNames).toEqual(uris);
  });
});

type Given = Uint8Array | RequestParts;

const commonName = (tag: number, ...value: Uint8Array[]) => nameOf(oids.commonName, der(tag, ...value));
const named = (tag: number, ...value: Uint8Array[]) => ({ subject: commonName(tag, ...value) });
const asked = (...attributes: Uint8Array[]) => ({ attributes });
const askedFor = (...names: Uint8Array[]) => asked(askingForNames(...names));
const withAttribute = (...parts: Parameters<typeof attribute>) => asked(attribute(...parts));
const withExtensions = (...extensions: Uint8Array[]) => asked(asking(...extensions));
const signedAs = (...parts: Uint8Array[]) => ({ signatureAlgorithm: der(0x30, ...parts) });
const signedBy = (signature: Uint8Array) => ({ signature: () => signature });
const dns = (text: string): Uint8Array => der(0x82, ascii(text));
const utf8 = (text: string): Uint8Array => der(0x0c, ascii(text));
const namesExtension = (...names: Uint8Array[]) => extension(oids.subjectAltName, der(0x30, ...names));

const otherKey = makeRequestKey("ml-dsa-44", der(0x30, oids.mldsa44));
const ecKey = makeRequestKey("ec", der(0x30, oids.ecdsaWithSha256));
const kemKey = Uint8Array.from(
  generateKeyPairSync("ml-kem-512").publicKey.export({ type: "spki", format: "der" }),
);
const nullValue = hex("0500");
const caWishes = [
  extension(oids.basicConstraints, hex("30030101ff"), hex("0101ff")),
  extension(oids.keyUsage, hex("03020106")),
];

/** Unusual requests that are accepted, and what is read from them. */
const accepted: Readonly<Record<string, [RequestParts, object]>> = {
  "a PrintableString": [named(0x13, ascii("release")), { subject: [{ type: "CN", value: "release" }] }],
  "an ECDSA key": [{ key: ecKey }, { algorithm: "ECDSA-P256" }],
  "wishes for a CA certificate": [withExtensions(...caWishes), { otherWishes: ["2.5.29.19", "2.5.29.15"] }],
  "a challenge password": [
    withAttribute(oids.challengePassword, utf8("secret")),
    { otherWishes: ["1.2.840.113549.1.9.7"] },
  ],
};

const valid = makeRequest(askedFor(dns("a.test")));
/** The same document with one length encoded in one byte too many. */
const padded = Uint8Array.from([0x30, 0x83, 0, valid[2] ?? 0, valid[3] ?? 0, ...valid.subarray(4)]);
const nested = Array.from({ length: 40 }).reduce<Uint8Array>((inner) => der(0x30, inner), nullValue);
const manyNulls = der(
  0x30,
  new Uint8Array(20_002).map((_, i) => (i % 2 === 0 ? 5 : 0)),
);
const keyParameters = der(0x30, der(0x30, oids.mldsa44, nullValue), mldsaKey.publicKey.subarray(17));
const shortKey = der(0x30, der(0x30, oids.mldsa44), der(0x03, new Uint8Array(100)));
const offCurve = flipBit(ecKey.publicKey, ecKey.publicKey.length - 1);
const namePart = (oid: Uint8Array, text: string) => der(0x30, oid, utf8(text));
const twoAttributes = der(0x31, namePart(oids.commonName, "a"), namePart(oids.organization, "b"));
const twoNames = ["a", "b"].map((text) => der(0x31, namePart(oids.commonName, text)));
const attributes = Array.from({ length: 17 }, (_, i) =>
  attribute(der(0x06, Uint8Array.of(0x55, i)), nullValue),
);
const longExtension = der(0x30, oids.keyUsage, der(0x04, hex("03020780")), nullValue);
const namesTwice = [dns("a.test"), dns("b.test")];
const manyNames = Array.from({ length: 101 }, (_, i) => dns(`a${i}.test`));
const longIdentifier = der(0x06, new Uint8Array(65).fill(1));
const email = nameOf(hex("06092a864886f70d010901"), der(0x16, ascii("a@b.test")));
const mlKem = hex("0609608648016503040401");
const trailing = Uint8Array.from([...der(0x30, dns("a.test")), 0]);

/** Rejected requests, and a word of each message. */
const refused: Readonly<Record<string, [Given, string]>> = {
  "no bytes": [new Uint8Array(), "PEM"],
  "a different text": [ascii("release"), "PEM"],
  "a certificate in PEM": [ascii(encodePem("CERTIFICATE", valid)), "expected CERTIFICATE REQUEST"],
  "two requests in PEM": [ascii(encodePem("CERTIFICATE REQUEST", valid).repeat(2)), "PEM"],
  "a file that is too large": [new Uint8Array(maxRequestFileBytes + 1).fill(0x30), "limit"],
  "a trailing byte": [Uint8Array.from([...valid, 0]), "follow"],
  "a missing byte": [valid.subarray(0, -1), "longer"],
  "a length in more bytes than necessary": [padded, "shortest"],
  "an indefinite length": [Uint8Array.from([0x30, 0x80, ...valid.subarray(4), 0, 0]), "indefinite"],
  "elements nested without end": [nested, "too deep"],
  "too many elements": [manyNulls, "too many"],
  "a different document's structure": [der(0x30, hex("020100")), "PKCS#10"],
  "an unknown version": [{ version: hex("020101") }, "version"],
  "an additional element": [{ rest: [der(0xa0), nullValue] }, "PKCS#10"],
  "no attributes, not even an empty set": [{ rest: [] }, "PKCS#10"],
  "a signature by a different key": [{ publicKey: otherKey.publicKey, key: mldsaKey }, "does not verify"],
  "a changed signature": [flipBit(valid, valid.length - 1), "does not verify"],
  "no signature": [signedBy(new Uint8Array()), "does not verify"],
  "a signature that is too long": [signedBy(new Uint8Array(100_000)), "does not verify"],
  "the identifier of a different signature algorithm": [signedAs(oids.mldsa65), "different algorithm"],
  "the identifier of an ECDSA signature": [signedAs(oids.ecdsaWithSha256), "different algorithm"],
  "parameters of the signature algorithm": [signedAs(oids.mldsa44, nullValue), "parameters"],
  "ECDSA parameters": [{ key: ecKey, ...signedAs(oids.ecdsaWithSha256, nullValue) }, "parameters"],
  "two parameters": [signedAs(oids.mldsa44, nullValue, nullValue), "PKCS#10"],
  "parameters of the key algorithm": [{ publicKey: keyParameters }, "requester's key"],
  "a key of the wrong length": [{ publicKey: shortKey }, "requester's key"],
  "a point that is not on the curve": [{ key: ecKey, publicKey: offCurve }, "point on its curve"],
  "an ECDSA signature that is not DER": [{ key: ecKey, ...signedBy(new Uint8Array(64)) }, "does not verify"],
  "a key that cannot sign": [{ publicKey: kemKey, ...signedAs(mlKem) }, "requester's key"],
  "a TeletexString": [named(0x14, ascii("release")), "UTF8String"],
  "a BMPString": [named(0x1e, ascii("\0r\0e")), "UTF8String"],
  "a UniversalString": [named(0x1c, ascii("\0\0\0r")), "UTF8String"],
  "an INTEGER as a name": [named(0x02, Uint8Array.of(1)), "UTF8String"],
  "a UTF8String that is not UTF-8": [named(0x0c, hex("ff")), "UTF8String"],
  "a PrintableString that is not ASCII": [named(0x13, hex("c3a4")), "UTF8String"],
  "a constructed string": [named(0x2c, utf8("a")), "several parts"],
  "a NUL in the subject": [named(0x0c, ascii("a\0b")), "control"],
  "a line break in the subject": [named(0x0c, ascii("a\nb")), "control"],
  "an empty name": [named(0x0c), "0 characters"],
  "a name that is too long": [named(0x0c, new Uint8Array(65).fill(97)), "65 characters"],
  "an unknown subject attribute": [{ subject: email }, "1.2.840.113549.1.9.1"],
  "a subject part with two attributes": [{ subject: der(0x30, twoAttributes) }, "part with 2 attributes"],
  "a subject part without an attribute": [{ subject: der(0x30, der(0x31)) }, ""],
  "two common names": [{ subject: der(0x30, ...twoNames) }, "twice"],
  "two extensionRequest attributes": [asked(...namesTwice.map((name) => askingForNames(name))), "twice"],
  "two lists of extensions": [withAttribute(oids.extensionRequest, der(0x30), der(0x30)), "exactly one"],
  "no list of extensions": [withAttribute(oids.extensionRequest), "exactly one"],
  "extensions of the wrong type": [withAttribute(oids.extensionRequest, nullValue), "list of extensions"],
  "an extension with an additional element": [withExtensions(longExtension), ""],
  "an encoded default value": [asked(asking(extension(oids.keyUsage, hex("03020780"), hex("010100")))), ""],
  "a duplicate extension": [withExtensions(...namesTwice.map((name) => namesExtension(name))), "twice"],
  "17 attributes": [{ attributes }, "limit"],
  "an empty list of names": [askedFor(), "0 names"],
  "101 names": [askedFor(...manyNames), "101 names"],
  "bytes after the list of names": [withExtensions(extension(oids.subjectAltName, trailing)), "follow"],
  "a host name of 200,000 bytes": [askedFor(dns("a".repeat(200_000))), "200000 bytes"],
  "a long object identifier": [withAttribute(longIdentifier, nullValue), "OBJECT IDENTIFIER of 65 bytes"],
  "a host name with a NUL": [askedFor(dns("a.test\0.example.com")), "host name"],
  "a host name with non-ASCII bytes": [askedFor(dns("\xe4.test")), "host name"],
  "an IP address of 8 bytes, which is a network": [askedFor(der(0x87, hex("0a000000ff000000"))), "8 bytes"],
  "an otherName": [askedFor(der(0xa0, hex("06032a0304"), der(0xa0, nullValue))), "unsupported kind"],
  "a directory name": [askedFor(der(0xa4, commonName(0x0c, ascii("a")))), "unsupported kind"],
  "a host name in constructed form": [askedFor(der(0xa2, der(0x16, ascii("a.test")))), ""],
};

describe("an untrusted certificate request", () => {
  it.each(Object.entries(accepted))("is accepted with %s", async (_what, [parts, expected]) => {
    expect(await read(makeRequest(parts))).toMatchObject(expected);
  });

  it.each(Object.entries(refused))("is rejected with %s", async (_what, [given, word]) => {
    const request = given instanceof Uint8Array ? given : makeRequest(given);
    const code = await refusal(() => read(request));
    expect(code).toMatch(/^INVALID_(ARGUMENT|KEY)$/);
    await expect(read(request)).rejects.toThrow(word);
  });

  it("is rejected whichever bit of its structure is flipped", async () => {
    // The bytes before the key, around the names, and at the start of the signature. The rest is uniform.
    const namesAt = Buffer.from(valid).indexOf("a.test") - 50;
    const places = Array.from({ length: 170 }, (_, i) => (i < 80 ? i : namesAt + i - 80));
    for (const place of places) {
      for (let bit = 0; bit < 8; bit += 1) {
        const changed = flipBit(valid, place, 1 << bit);
        expect(await refusal(() => read(changed)), `byte ${place}, bit ${bit}`).toBeDefined();
      }
    }
  });
});

const server = useServer();

async function makeKey(algorithm = "ML-DSA-44"): Promise<string> {
  return (await server.client(KmsService).createKey({ algorithm })).result?.keyId ?? "";
}

describe("KmsService.CreateCsr", { timeout }, () => {
  const subject = "CN=Zoë\\, release,OU=Signing,O=Example,C=DE";
  const names = {
    dnsNames: ["Example.com", "*.example.com"],
    ipAddresses: ["10.0.0.1", "2001:DB8:0::1"],
    emails: ["release@example.com"],
    uris: ["https://example.com/release", "urn:example:release"],
  };
  const formatted = [
    ...["dns:example.com", "dns:*.example.com", "ip:10.0.0.1", "ip:2001:db8::1"],
    ...["email:release@example.com", "uri:https://example.com/release", "uri:urn:example:release"],
  ];

  const algorithms = ["ML-DSA-65", "SLH-DSA-SHA2-128f", ...compositeNames];
  it.each(algorithms)("requests exactly the given names for a %s key", async (algorithm) => {
    const kms = server.client(KmsService);
    const { keyId, publicKey, publicKeyPem } = present((await kms.createKey({ algorithm })).result);
    const { csr, csrPem, ...about } = present((await kms.createCsr({ keyId, subject, ...names })).result);
    expect(about).toMatchObject({ keyId, algorithm, publicKey, publicKeyPem });
    const request = await read(csr);
    expect(await read(Buffer.from(csrPem))).toEqual(request);
    expect(formatDistinguishedName(request.subject)).toBe(subject);
    expect(request.alternativeNames.map(formatAlternativeName)).toEqual(formatted);
    expect(request).toMatchObject({ algorithm, otherWishes: [] });
  });
});

describe("qsp kms csr", { timeout }, () => {
  it("writes a request with all names in the order of the options", async () => {
    const place = server.place();
    const names = "--dns a.test --dns b.test --ip ::1 --email a@a.test --uri urn:a:b".split(" ");
    const args = ["kms", "csr", await makeKey(), "--subject", "CN=release\\, x", ...names, "--out", "a.csr"];
    expect(await qspDone(args, place)).toMatch(/^a\.csr: request of [\d,]+ bytes, ML-DSA-44\n$/);
    const request = await read(readFileSync(join(place.cwd, "a.csr")));
    expect(formatDistinguishedName(request.subject)).toBe("CN=release\\, x");
    const formatted = "dns:a.test dns:b.test ip:::1 email:a@a.test uri:urn:a:b";
    expect(request.alternativeNames.map(formatAlternativeName).join(" ")).toBe(formatted);
    expect((statSync(join(place.cwd, "a.csr")).mode & 0o777).toString(8)).toBe("644");
  });

  it("prints the request without --out, and the whole answer with --json", async () => {
    const [place, keyId] = [server.place(), await makeKey()];
    const pem = await qspDone(["kms", "csr", keyId, "--subject", "CN=a"], place);
    expect((await read(Buffer.from(pem))).algorithm).toBe("ML-DSA-44");
    const { result } = await qspJson(["kms", "csr", keyId, "--subject", "CN=a"], place);
    expect(result).toMatchObject({ keyId, algorithm: "ML-DSA-44", csrPem: expect.any(String) });
  });

  it("names the field that the server rejects, and writes no file", async () => {
    const place = server.place();
    const line = ["kms", "csr", await makeKey(), "--subject", "CN=a, O=b", "--out", "a.csr"];
    const stderr = expect.stringContaining("subject");
    expect(await qsp(line, place)).toMatchObject({ code: 3, stderr });
    expect(() => statSync(join(place.cwd, "a.csr"))).toThrow();
  });

  it("requires a name", async () => {
    const stderr = expect.stringContaining("use --subject, --dns, --ip, --email or --uri");
    expect(await qsp(["kms", "csr", "k"], server.place())).toMatchObject({ code: 2, stderr });
  });
});
