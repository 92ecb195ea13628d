/** CSRs that tests write byte by byte, so that they can break any part. */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** Encodes a DER element. */
export function der(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const content = Buffer.concat(contents);
  const length =
    content.length < 0x80
      ? [content.length]
      : content.length < 0x100
        ? [0x81, content.length]
        : content.length < 0x1_0000
          ? [0x82, content.length >> 8, content.length & 0xff]
          : [0x83, content.length >> 16, (content.length >> 8) & 0xff, content.length & 0xff];
  return Uint8Array.from([tag, ...length, ...content]);
}

export const hex = (digits: string): Uint8Array => Uint8Array.fromHex(digits.replaceAll(" ", ""));
export const ascii = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "latin1"));

/** Encoded object identifiers, with tag and length. */
export const oids = {
  commonName: hex("0603550403"),
  organization: hex("060355040a"),
  extensionRequest: hex("06092a864886f70d01090e"),
  challengePassword: hex("06092a864886f70d010907"),
  subjectAltName: hex("0603551d11"),
  basicConstraints: hex("0603551d13"),
  keyUsage: hex("0603551d0f"),
  mldsa44: hex("0609608648016503040311"),
  mldsa65: hex("0609608648016503040312"),
  ecdsaWithSha256: hex("06082a8648ce3d040302"),
};

/** A key that signs CSRs, and the AlgorithmIdentifier of its signatures. */
export interface RequestKey {
  readonly secretKey: KeyObject;
  readonly publicKey: Uint8Array;
  readonly signatureAlgorithm: Uint8Array;
  readonly digest: "sha256" | null;
}

export const mldsaKey = makeRequestKey("ml-dsa-44", der(0x30, oids.mldsa44));

export function makeRequestKey(
  type: "ml-dsa-44" | "ml-dsa-65" | "ec",
  signatureAlgorithm: Uint8Array,
): RequestKey {
  const pair =
    type === "ec" ? generateKeyPairSync("ec", { namedCurve: "prime256v1" }) : generateKeyPairSync(type);
  return {
    secretKey: pair.privateKey,
    publicKey: Uint8Array.from(pair.publicKey.export({ type: "spki", format: "der" })),
    signatureAlgorithm,
    digest: type === "ec" ? "sha256" : null,
  };
}

/** Parts of a CSR in DER; each has a valid default. */
export interface RequestParts {
  readonly key?: RequestKey;
  readonly version?: Uint8Array;
  readonly subject?: Uint8Array;
  readonly publicKey?: Uint8Array;
  /** Attributes; undefined for none. */
  readonly attributes?: readonly Uint8Array[];
  /** Replaces everything after the public key. */
  readonly rest?: readonly Uint8Array[];
  readonly signatureAlgorithm?: Uint8Array;
  readonly signature?: (message: Uint8Array) => Uint8Array;
}

/** A name with one attribute in one part. */
export const nameOf = (oid: Uint8Array, value: Uint8Array): Uint8Array =>
  der(0x30, der(0x31, der(0x30, oid, value)));

export const extension = (
  oid: Uint8Array,
  value: Uint8Array,
  ...critical: readonly Uint8Array[]
): Uint8Array => der(0x30, oid, ...critical, der(0x04, value));

export const attribute = (oid: Uint8Array, ...values: readonly Uint8Array[]): Uint8Array =>
  der(0x30, oid, der(0x31, ...values));

/** The attribute that requests extensions. */
export const asking = (...extensions: readonly Uint8Array[]): Uint8Array =>
  attribute(oids.extensionRequest, der(0x30, ...extensions));

/** The attribute that requests names: GeneralNames with their tags. */
export const askingForNames = (...names: readonly Uint8Array[]): Uint8Array =>
  asking(extension(oids.subjectAltName, der(0x30, ...names)));

/** Creates a CSR from its parts and signs it. */
export function makeRequest(parts: RequestParts = {}): Uint8Array {
  const { key = mldsaKey } = parts;
  const information = der(
    0x30,
    parts.version ?? hex("020100"),
    parts.subject ?? nameOf(oids.commonName, der(0x0c, ascii("release"))),
    parts.publicKey ?? key.publicKey,
    ...(parts.rest ?? [der(0xa0, ...(parts.attributes ?? []))]),
  );
  const signWithKey = (message: Uint8Array): Uint8Array => sign(key.digest, message, key.secretKey);
  const signature = (parts.signature ?? signWithKey)(information);
  const algorithm = parts.signatureAlgorithm ?? key.signatureAlgorithm;
  return der(0x30, information, algorithm, der(0x03, Uint8Array.of(0), signature));
}
