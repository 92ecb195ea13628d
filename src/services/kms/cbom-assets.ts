/** Describes cryptographic assets as CycloneDX 1.7 components. */
import type { X509Certificate } from "node:crypto";
import {
  type AlgorithmInfo,
  algorithms,
  compositeHalves,
  isCompositeAlgorithm,
} from "../../crypto/algorithms.ts";
import type { KeyState } from "./record.ts";
import type { StoredKey } from "./store.ts";

/** A component, and the assets that it uses. */
export interface Asset {
  /** Identifies the component in the document. */
  readonly ref: string;
  readonly component: object;
  readonly dependsOn: readonly Asset[];
}

/** Removes assets that occur twice, such as a CA certificate in two files. */
export function listUnique(assets: readonly Asset[]): Asset[] {
  return [...new Map(assets.map((asset) => [asset.ref, asset])).values()];
}

/** Algorithm families that CycloneDX defines (cryptography-defs.schema.json). */
const definedFamilies: readonly string[] = ["ML-DSA", "SLH-DSA", "ML-KEM", "ECDSA"];

/** CycloneDX names the states of NIST SP 800-57 part 1, section 7: a deactivated key may still verify and decrypt. */
const states = {
  ACTIVE: "active",
  ROTATED: "deactivated",
  DISABLED: "suspended",
  DESTROY_SCHEDULED: "suspended",
  DESTROYED: "destroyed",
} as const satisfies Record<KeyState, string>;

/** The cipher that seals all stored secret keys (src/crypto/sealing.ts). */
export const sealing = describeAlgorithmAsset("AES-256-GCM", "2.16.840.1.101.3.4.1.46", {
  primitive: "ae",
  algorithmFamily: "AES",
  parameterSetIdentifier: "256",
  mode: "gcm",
  cryptoFunctions: ["keygen", "encrypt", "decrypt"],
  // Category 5 is defined by key search on AES-256.
  nistQuantumSecurityLevel: 5,
});

/**
 * Classical algorithms that only a hybrid has. Object identifiers of RFC 8410, section 3, and RFC 5480, section 2.1.1.
 */
const classicalHalves = {
  Ed25519: {
    primitive: "signature",
    algorithmFamily: "EdDSA",
    parameterSetIdentifier: "Ed25519",
    cryptoFunctions: ["keygen", "sign", "verify"],
    oid: "1.3.101.112",
  },
  "ECDSA-P384": {
    primitive: "signature",
    algorithmFamily: "ECDSA",
    parameterSetIdentifier: "P384",
    cryptoFunctions: ["keygen", "sign", "verify"],
    oid: "1.2.840.10045.2.1",
  },
  X25519: {
    primitive: "key-agree",
    parameterSetIdentifier: "X25519",
    cryptoFunctions: ["keygen", "keyderive"],
    oid: "1.3.101.110",
  },
} as const;

const algorithmAssets = new Map(
  Object.values(algorithms).map((info) => [info.name, describeAlgorithm(info)]),
);

function describeAlgorithm({ name, family, category, nistLevel, oid, standard }: AlgorithmInfo): Asset {
  const isSignature = category === "SIGNATURE";
  const algorithmProperties = {
    primitive: isSignature ? "signature" : "kem",
    ...(definedFamilies.includes(family) && { algorithmFamily: family }),
    ...(name.startsWith(`${family}-`) && { parameterSetIdentifier: name.slice(family.length + 1) }),
    cryptoFunctions: ["keygen", ...(isSignature ? ["sign", "verify"] : ["encapsulate", "decapsulate"])],
    nistQuantumSecurityLevel: nistLevel ?? 0,
  };
  return describeAlgorithmAsset(name, oid, algorithmProperties, { standard }, listHalves(name));
}

/** Describes the two algorithms of a hybrid; a break of one does not break the hybrid. */
function listHalves(name: AlgorithmInfo["name"]): Asset[] {
  // draft-connolly-cfrg-xwing-kem-11, section 4.
  if (name === "X-Wing") return [describeAlgorithm(algorithms["ML-KEM-768"]), describeClassical("X25519")];
  if (!isCompositeAlgorithm(name)) return [];
  const { mlDsa, classical } = compositeHalves[name];
  return [
    describeAlgorithm(algorithms[mlDsa]),
    classical === "ECDSA-P256" ? describeAlgorithm(algorithms[classical]) : describeClassical(classical),
  ];
}

/** Describes a classical half that no key has alone. */
function describeClassical(name: keyof typeof classicalHalves): Asset {
  const { oid, ...properties } = classicalHalves[name];
  return describeAlgorithmAsset(name, oid, { ...properties, nistQuantumSecurityLevel: 0 });
}

/** Describes a stored secret key. Of a damaged one, only the ID is known. */
export function describeKey({ record, isIntact }: StoredKey): Asset {
  const { keyId, alias, name, version, usage, state, createdAt, destroyAt } = record;
  const algorithm = algorithmAssets.get(record.algorithm);
  if (!isIntact || algorithm === undefined) return describeMaterial(keyId, keyId, {}, { damaged: true });
  const material = {
    state: states[state],
    creationDate: createdAt.toISOString(),
    ...(state === "DESTROY_SCHEDULED" && { expirationDate: destroyAt?.toISOString() }),
    size: algorithms[record.algorithm].secretKeyBytes * 8,
    ...(state !== "DESTROYED" && { securedBy: { mechanism: "Software", algorithmRef: sealing.ref } }),
    relatedCryptographicAssets: [toRelated(algorithm)],
  };
  const title = name === undefined ? alias : `${name}/${version}`;
  const origin = record.isImported ? "IMPORTED" : "GENERATED";
  return describeMaterial(keyId, title, material, { usage, status: state, origin }, [algorithm]);
}

function describeMaterial(
  keyId: string,
  title: string,
  material: object,
  properties: object,
  dependsOn: readonly Asset[] = [],
): Asset {
  const cryptoProperties = {
    assetType: "related-crypto-material",
    relatedCryptoMaterialProperties: { type: "private-key", id: keyId, ...material },
  };
  return describeAsset(keyId, title, cryptoProperties, properties, dependsOn);
}

function toRelated({ ref }: Asset) {
  return { type: "algorithm", ref };
}

/** Describes a certificate that the server presents, with the algorithms of its signature and of its key. */
export function describeCertificate(certificate: X509Certificate): Asset {
  const { subject, issuer, serialNumber, fingerprint256, validFromDate, validToDate } = certificate;
  const fingerprint = fingerprint256.replaceAll(":", "").toLowerCase();
  const used = listUnique([describeSignature(certificate), describeKeyAlgorithm(certificate)]);
  const cryptoProperties = {
    assetType: "certificate",
    certificateProperties: {
      serialNumber,
      subjectName: toOneLine(subject),
      issuerName: toOneLine(issuer),
      notValidBefore: validFromDate.toISOString(),
      notValidAfter: validToDate.toISOString(),
      certificateFormat: "X.509",
      fingerprint: { alg: "SHA-256", content: fingerprint },
      relatedCryptographicAssets: used.map(toRelated),
    },
  };
  const title = toOneLine(subject) || fingerprint;
  return describeAsset(`certificate/${fingerprint}`, title, cryptoProperties, {}, used);
}

/** Joins the lines in which node:crypto writes a distinguished name, the most specific first (RFC 4514). */
function toOneLine(distinguishedName: string | undefined): string {
  return (distinguishedName ?? "").split("\n").reverse().join(",");
}

function describeSignature({
  signatureAlgorithm = "unknown",
  signatureAlgorithmOid,
}: X509Certificate): Asset {
  const isClassical = /^(ecdsa-|sha\d+WithRSA|rsassaPss|ed\d+$)/i.test(signatureAlgorithm);
  return describeForeign(signatureAlgorithm, isClassical, signatureAlgorithmOid);
}

function describeKeyAlgorithm({ publicKey }: X509Certificate): Asset {
  const { asymmetricKeyType = "unknown", asymmetricKeyDetails = {} } = publicKey;
  const { namedCurve, modulusLength } = asymmetricKeyDetails;
  // OpenSSL's names of the curves.
  if (namedCurve === "prime256v1") return describeAlgorithm(algorithms["ECDSA-P256"]);
  if (namedCurve === "secp384r1") return describeClassical("ECDSA-P384");
  const isClassical = /^(ec|rsa|rsa-pss|dsa|ed\d+)$/.test(asymmetricKeyType);
  const parameter = namedCurve ?? modulusLength;
  const name = parameter === undefined ? asymmetricKeyType : `${asymmetricKeyType}-${parameter}`;
  return describeForeign(name.toUpperCase(), isClassical);
}

/** Describes an algorithm of a certificate, which need not be one of ours. */
function describeForeign(name: string, isClassical: boolean, oid?: string): Asset {
  for (const [own, asset] of algorithmAssets) if (own.toUpperCase() === name.toUpperCase()) return asset;
  // The NIST security category of an algorithm that is not classical is not known.
  const level = isClassical ? 0 : undefined;
  return describeAlgorithmAsset(name, oid, { primitive: "signature", nistQuantumSecurityLevel: level });
}

function describeAlgorithmAsset(
  name: string,
  oid: string | undefined,
  algorithmProperties: object,
  ...more: [properties?: object, dependsOn?: readonly Asset[]]
): Asset {
  const cryptoProperties = { assetType: "algorithm", algorithmProperties, oid };
  return describeAsset(`algorithm/${name}`, name, cryptoProperties, ...more);
}

function describeAsset(
  ref: string,
  name: string,
  cryptoProperties: object,
  properties: object = {},
  dependsOn: readonly Asset[] = [],
): Asset {
  const own = Object.entries(properties).map(([key, value]) => ({
    name: `qsp:${key}`,
    value: String(value),
  }));
  const component = {
    type: "cryptographic-asset",
    "bom-ref": ref,
    name,
    cryptoProperties,
    ...(own.length > 0 && { properties: own }),
  };
  return { ref, component, dependsOn };
}
