import { generateKeyPairSync, sign, verify } from "node:crypto";
import { fromBER, Integer, Null, ObjectIdentifier, Primitive, Sequence, UTCTime } from "asn1js";
import { describe, expect, it } from "vitest";
import type { SignatureAlgorithm } from "../../../src/crypto/algorithms.ts";
import { encodePem } from "../../../src/crypto/pem.ts";
import { selectDigest } from "../cms-algorithms.ts";
import { parseCms } from "../cms-parse.ts";
import { createCmsAttributes, renderCms } from "../cms-sign.ts";
import { childrenOf, embedContent } from "./embed-content.ts";

const content = Buffer.from("hello");
const { publicKey, privateKey } = generateKeyPairSync("ml-dsa-65");
const rawKey = new Uint8Array(publicKey.export({ format: "raw-public" }));

function makeMessage(algorithm: SignatureAlgorithm = "ML-DSA-65", time = new Date("2026-01-02T03:04:05Z")) {
  const digest = selectDigest(algorithm).start().update(content).digest();
  const attributes = createCmsAttributes(algorithm, digest, time);
  return renderCms(attributes, sign(null, attributes.toBeSigned, privateKey), { publicKey: rawKey });
}

/** Replaces one of the places of some bytes, counted from the end if negative; all are hexadecimal. */
function replace(message: Uint8Array, from = "", to = "", place = 0): Buffer {
  const parts = Buffer.from(message).toString("hex").split(from);
  const at = place < 0 ? parts.length + place : place + 1;
  expect(parts.length).toBeGreaterThan(at);
  return Buffer.from([parts.slice(0, at).join(from), parts.slice(at).join(from)].join(to), "hex");
}

/** Object identifiers in DER: SHA-512, SHA-256, ML-DSA-65 and ML-DSA-44. */
const [sha512, sha256, mlDsa65, mlDsa44] = ["0203", "0201", "0312", "0311"].map(
  (arcs) => `060960864801650304${arcs}`,
);

describe("CMS", () => {
  it("signs the attributes' DER as a SET OF, which verifies as a plain message", () => {
    const [signature] = parseCms(makeMessage()).signatures;
    const { signedAttributes = Buffer.of(), signature: bytes = Buffer.of() } = signature ?? {};
    expect(signedAttributes[0]).toBe(0x31);
    expect(verify(null, signedAttributes, publicKey, bytes)).toBe(true);
    expect(signature?.signingTime?.toISOString()).toBe("2026-01-02T03:04:05.000Z");
  });

  it("digests with SHA-512 for ML-DSA (RFC 9882), and with the parameter set's digest for SLH-DSA (RFC 9814)", () => {
    const oidOf = (name: SignatureAlgorithm) => selectDigest(name).oid.split(".").at(-1);
    const arcs = {
      "ML-DSA-44": "3",
      "ML-DSA-87": "3",
      "SLH-DSA-SHA2-128s": "1",
      "SLH-DSA-SHA2-192f": "3",
      "SLH-DSA-SHAKE-128f": "11",
      "SLH-DSA-SHAKE-256s": "12",
    };
    const names = Object.keys(arcs) as SignatureAlgorithm[];
    expect(Object.fromEntries(names.map((name) => [name, oidOf(name)]))).toEqual(arcs);
  });

  it("writes times after 2049 with four-digit years", () => {
    const [signature] = parseCms(makeMessage("ML-DSA-65", new Date("2050-01-02T03:04:05Z"))).signatures;
    expect(signature?.signingTime?.getUTCFullYear()).toBe(2050);
  });

  it("accepts PEM with either label", () => {
    for (const label of ["CMS", "PKCS7"])
      expect(parseCms(Buffer.from(encodePem(label, makeMessage()))).signatures).toHaveLength(1);
  });

  it("returns the embedded content, even if it is empty or looks like PEM", () => {
    expect(parseCms(makeMessage()).content).toBeUndefined();
    for (const text of ["hello", "", "-----BEGIN CMS-----\nAAAA\n-----END CMS-----\n"]) {
      const { content, signatures } = parseCms(embedContent(makeMessage(), Buffer.from(text)));
      expect([Buffer.from(content ?? []).toString(), signatures.length]).toEqual([text, 1]);
    }
  });

  it("returns embedded content that is DER with more elements than a message may have", () => {
    const elements = Buffer.alloc(40_000).fill(Buffer.of(5, 0));
    const sequence = Buffer.concat([Buffer.of(0x30, 0x82, 0x9c, 0x40), elements]);
    const embedded = parseCms(embedContent(makeMessage(), sequence)).content ?? content;
    expect(Buffer.compare(embedded, sequence)).toBe(0);
  });

  const indefinite = (message: Uint8Array) =>
    Buffer.concat([Buffer.of(0x30, 0x80), message.subarray(4), Buffer.alloc(2)]);
  const isCut = /strict DER: (it ends too early|an element is longer)/;
  const [data, digestedData] = ["06092a864886f70d010702", "06092a864886f70d010706"];
  it.each<[string, (message: Uint8Array) => Uint8Array, RegExp]>([
    ["a trailing byte", (message) => Buffer.concat([message, Buffer.of(0)]), /1 bytes follow/],
    ["a truncated message", (message) => message.subarray(0, -1), isCut],
    ["a digest that differs from the protected one", (it) => replace(it, sha512, sha256, 1), /too short/],
    ["an unprotected algorithm", (it) => replace(it, mlDsa65, mlDsa44, -1), /AlgorithmProtection/],
    ["an indefinite length", indefinite, /not strict DER/],
    ["a different content type", (message) => replace(message, data, digestedData), /type/],
    ["a different kind of PEM block", () => Buffer.from(encodePem("X509 CRL", Buffer.alloc(3))), /./],
    ["text", () => Buffer.from("hello"), /./],
    ["nothing", () => Buffer.of(), isCut],
  ])("rejects %s", (_, change, message) => {
    expect(() => parseCms(change(makeMessage()))).toThrow(message);
  });

  it.each([
    ["month 13", "261302030405Z"],
    ["30 February", "260230030405Z"],
    ["text", "hello"],
    ["a time without a zone", "260102030405"],
    ["a time in a zone other than UTC", "260102030405+0100"],
  ])("rejects %s as the signing time", (_, time) => {
    const valueHex = new TextEncoder().encode(time);
    const idBlock = { tagClass: 1, tagNumber: 23 };
    const changed = edit((info) => setAttribute(info, UTCTime, new Primitive({ idBlock, valueHex })));
    expect(() => parseCms(changed)).toThrow(/signing-time is not a valid time/);
  });

  const [one, ninetyNine] = [1, 99].map((value) => new Integer({ value }));
  const signedData = new ObjectIdentifier({ value: "1.2.840.113549.1.7.2" });
  const other = new Sequence({ value: [new ObjectIdentifier({ value: "2.16.840.1.101.3.4.2.1" })] });

  const isMissing = /the digest 2\.16\.840\.1\.101\.3\.4\.2\.3, which is missing from digestAlgorithms/;
  it.each<[string, Parameters<typeof edit>[0], RegExp]>([
    // They could be a different message's attributes.
    ["a signature without signed attributes", (info) => info.splice(3, 1), /no signed attributes/],
    ["attributes out of order", (info) => attributesOf(info).reverse(), /not in DER order/],
    ["a duplicate attribute", (info) => attributesOf(info).splice(1, 0, attributesOf(info)[0]), /twice/],
    ["a different content type", (info) => setAttribute(info, ObjectIdentifier, signedData), /must be data/],
    ["a SignerInfo of an undefined version", (info) => info.splice(0, 1, one), /version 1; expected 3/],
    ["SignedData of an undefined version", (_, __, data) => data.splice(0, 1, ninetyNine), /version 99/],
    ["an element after the signers", (_, __, data) => data.push(one), /does not define/],
    ["digest parameters", (info) => childrenOf(info[2]).push(one), /has parameters/],
    ["an unlisted digest", (_, __, data) => childrenOf(data[1]).splice(0), isMissing],
    ["a list with a different digest", (_, __, data) => childrenOf(data[1]).splice(0, 1, other), isMissing],
    ["17 signers", (_, infos) => infos.push(...Array(16).fill(infos[0])), /17 signers/],
  ])("rejects %s", (_, change, message) => {
    expect(() => parseCms(edit(change))).toThrow(message);
  });

  it("accepts digest parameters of NULL, and additional digests in the message's list", () => {
    for (const message of [
      edit((info) => childrenOf(info[2]).push(new Null())),
      edit((_, __, data) => childrenOf(data[1]).unshift(other)),
    ])
      expect(parseCms(message).signatures).toHaveLength(1);
  });

  it.each([
    ["nested elements", Buffer.from("3080".repeat(400_000), "hex"), /indefinite/],
    ["empty elements", Buffer.concat([Buffer.from("30830f4240", "hex"), Buffer.alloc(1_000_000)]), /it has/],
    ["data beyond the limit", Buffer.alloc(20_000_000, 0x30), /20000000 bytes; the limit/],
  ])("rejects a megabyte of %s and says where parsing stopped", (_, bytes, reason) => {
    expect(() => parseCms(bytes)).toThrow(reason);
  });
});

type Blocks = unknown[];

/** Changes the SignerInfo's parts and lets asn1js recompute all lengths. */
function edit(change: (signerInfo: Blocks, signerInfos: Blocks, signedData: Blocks) => void): Uint8Array {
  const message = childrenOf(fromBER(makeMessage()).result);
  const signedData = childrenOf(childrenOf(message[1])[0]);
  const signerInfos = childrenOf(signedData.at(-1));
  change(childrenOf(signerInfos[0]), signerInfos, signedData);
  const root = new Sequence({ value: message as Sequence["valueBlock"]["value"] });
  return new Uint8Array(root.toBER());
}

/** Replaces the value of the attribute whose value has this type, and restores the order. */
function setAttribute(info: Blocks, type: typeof UTCTime | typeof ObjectIdentifier, value: unknown): void {
  const attributes = attributesOf(info);
  const found = attributes.find((attribute) => childrenOf(childrenOf(attribute)[1])[0] instanceof type);
  childrenOf(childrenOf(found)[1])[0] = value;
  attributes.sort((a, b) => Buffer.compare(derOf(a), derOf(b)));
}

function derOf(block: unknown): Buffer {
  return block instanceof Sequence ? Buffer.from(block.toBER()) : Buffer.of();
}

function attributesOf(signerInfo: Blocks): Blocks {
  return childrenOf(signerInfo[3]);
}
