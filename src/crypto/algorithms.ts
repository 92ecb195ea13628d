/** Lattice signatures of FIPS 204. */
export const mlDsaNames = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"] as const;

/** Hash-based signatures of FIPS 205: "s" sets have small signatures, "f" sets sign fast. */
export const slhDsaNames = [
  "SLH-DSA-SHA2-128s",
  "SLH-DSA-SHA2-128f",
  "SLH-DSA-SHA2-192s",
  "SLH-DSA-SHA2-192f",
  "SLH-DSA-SHA2-256s",
  "SLH-DSA-SHA2-256f",
  "SLH-DSA-SHAKE-128s",
  "SLH-DSA-SHAKE-128f",
  "SLH-DSA-SHAKE-192s",
  "SLH-DSA-SHAKE-192f",
  "SLH-DSA-SHAKE-256s",
  "SLH-DSA-SHAKE-256f",
] as const;

/** Composites of ML-DSA and a classical algorithm (draft-ietf-lamps-pq-composite-sigs-19, section 6). */
export const compositeNames = [
  "MLDSA44-Ed25519-SHA512",
  "MLDSA65-Ed25519-SHA512",
  "MLDSA65-ECDSA-P256-SHA512",
  "MLDSA87-ECDSA-P384-SHA512",
] as const;

/** Key encapsulation mechanisms (KEM) of FIPS 203. */
export const mlKemNames = ["ML-KEM-512", "ML-KEM-768", "ML-KEM-1024"] as const;

/**
 * All key encapsulation mechanisms: the ML-KEM sets of FIPS 203, and X-Wing, a hybrid of ML-KEM-768 and
 * X25519.
 */
export const kemNames = [...mlKemNames, "X-Wing"] as const;

export type MlDsaAlgorithm = (typeof mlDsaNames)[number];
export type SlhDsaAlgorithm = (typeof slhDsaNames)[number];
export type CompositeAlgorithm = (typeof compositeNames)[number];
export type SignatureAlgorithm = MlDsaAlgorithm | SlhDsaAlgorithm | CompositeAlgorithm | "ECDSA-P256";
export type MlKemAlgorithm = (typeof mlKemNames)[number];
export type KemAlgorithm = (typeof kemNames)[number];
export type Algorithm = SignatureAlgorithm | KemAlgorithm;
/** Algorithms of a final standard: all except X-Wing and composites, which are still Internet-Drafts. */
export type StandardAlgorithm = Exclude<SignatureAlgorithm, CompositeAlgorithm> | MlKemAlgorithm;
/** Classical algorithm in a composite. */
export type ClassicalAlgorithm = keyof typeof classicalSizes;

/** Fields that all parameter sets share. Sizes are in bytes. */
interface ParameterSet<Name extends Algorithm> {
  readonly name: Name;
  readonly family: "ML-DSA" | "SLH-DSA" | "ML-KEM" | "X-Wing" | "ECDSA" | "Composite";
  readonly standard:
    | "FIPS 203"
    | "FIPS 204"
    | "FIPS 205"
    | "FIPS 186-5"
    | "draft-connolly-cfrg-xwing-kem"
    | typeof compositeDraft;
  /**
   * NIST post-quantum security category; for composites, the category of ML-DSA; undefined for ECDSA, which
   * quantum computers break.
   */
  readonly nistLevel: 1 | 2 | 3 | 5 | undefined;
  /** Raw public key; for ECDSA the uncompressed point of SEC 1, section 2.3.3. */
  readonly publicKeyBytes: number;
  /**
   * Raw secret key in the standard's expanded form; the scalar for ECDSA, the seed for X-Wing; for composites,
   * the ML-DSA seed followed by the classical key.
   */
  readonly secretKeyBytes: number;
  /** Seed that the key pair derives from; undefined if the standard has no seed form. */
  readonly seedBytes: number | undefined;
  /** Object identifier of the key and its signatures; for ECDSA, of the key only. */
  readonly oid: string;
}

export interface SignatureParameterSet extends ParameterSet<SignatureAlgorithm> {
  readonly category: "SIGNATURE";
  /** Exact length of a signature; maximum length if it ends with ECDSA in DER. */
  readonly signatureBytes: number;
  /** Minimum length of a signature; less than `signatureBytes` only if it ends with ECDSA in DER. */
  readonly minSignatureBytes: number;
}

export interface KemParameterSet extends ParameterSet<KemAlgorithm> {
  readonly category: "KEM";
  readonly ciphertextBytes: number;
  readonly sharedSecretBytes: number;
}

export type AlgorithmInfo = SignatureParameterSet | KemParameterSet;

/** The version of the draft whose labels, object identifiers and encodings composites have. */
export const compositeDraft = "draft-ietf-lamps-pq-composite-sigs-19";

/**
 * Sizes of classical halves, in bytes: public keys and secret keys as encoded by section 4 of the draft.
 * An ECDSA signature is a DER SEQUENCE of two integers (X.690, section 8.3).
 */
const classicalSizes = {
  Ed25519: { publicKeyBytes: 32, secretKeyBytes: 32, signatureBytes: 64, minSignatureBytes: 64 },
  "ECDSA-P256": { publicKeyBytes: 65, secretKeyBytes: 51, signatureBytes: 72, minSignatureBytes: 8 },
  "ECDSA-P384": { publicKeyBytes: 97, secretKeyBytes: 64, signatureBytes: 104, minSignatureBytes: 8 },
} as const;

/** The algorithms of the two halves of each composite. */
export const compositeHalves: Readonly<
  Record<CompositeAlgorithm, { readonly mlDsa: MlDsaAlgorithm; readonly classical: ClassicalAlgorithm }>
> = Object.freeze({
  "MLDSA44-Ed25519-SHA512": { mlDsa: "ML-DSA-44", classical: "Ed25519" },
  "MLDSA65-Ed25519-SHA512": { mlDsa: "ML-DSA-65", classical: "Ed25519" },
  "MLDSA65-ECDSA-P256-SHA512": { mlDsa: "ML-DSA-65", classical: "ECDSA-P256" },
  "MLDSA87-ECDSA-P384-SHA512": { mlDsa: "ML-DSA-87", classical: "ECDSA-P384" },
});

const mlDsaSets = {
  // FIPS 204, tables 1 and 2; object identifiers of RFC 9881, section 2.
  "ML-DSA-44": mlDsa("ML-DSA-44", 2, 1312, 2560, 2420, 17),
  "ML-DSA-65": mlDsa("ML-DSA-65", 3, 1952, 4032, 3309, 18),
  "ML-DSA-87": mlDsa("ML-DSA-87", 5, 2592, 4896, 4627, 19),
};

/** All signature parameter sets by name, in display order. */
export const signatureAlgorithms: Readonly<Record<SignatureAlgorithm, SignatureParameterSet>> = Object.freeze(
  {
    ...mlDsaSets,
    // FIPS 205, table 2; object identifiers of RFC 9909, section 3.
    "SLH-DSA-SHA2-128s": slhDsa("SLH-DSA-SHA2-128s", 1, 16, 7856, 20),
    "SLH-DSA-SHA2-128f": slhDsa("SLH-DSA-SHA2-128f", 1, 16, 17088, 21),
    "SLH-DSA-SHA2-192s": slhDsa("SLH-DSA-SHA2-192s", 3, 24, 16224, 22),
    "SLH-DSA-SHA2-192f": slhDsa("SLH-DSA-SHA2-192f", 3, 24, 35664, 23),
    "SLH-DSA-SHA2-256s": slhDsa("SLH-DSA-SHA2-256s", 5, 32, 29792, 24),
    "SLH-DSA-SHA2-256f": slhDsa("SLH-DSA-SHA2-256f", 5, 32, 49856, 25),
    "SLH-DSA-SHAKE-128s": slhDsa("SLH-DSA-SHAKE-128s", 1, 16, 7856, 26),
    "SLH-DSA-SHAKE-128f": slhDsa("SLH-DSA-SHAKE-128f", 1, 16, 17088, 27),
    "SLH-DSA-SHAKE-192s": slhDsa("SLH-DSA-SHAKE-192s", 3, 24, 16224, 28),
    "SLH-DSA-SHAKE-192f": slhDsa("SLH-DSA-SHAKE-192f", 3, 24, 35664, 29),
    "SLH-DSA-SHAKE-256s": slhDsa("SLH-DSA-SHAKE-256s", 5, 32, 29792, 30),
    "SLH-DSA-SHAKE-256f": slhDsa("SLH-DSA-SHAKE-256f", 5, 32, 49856, 31),
    // FIPS 186-5, section 6, with SHA-256 on secp256r1; object identifier of RFC 5480, section 2.1.1.
    "ECDSA-P256": Object.freeze({
      name: "ECDSA-P256",
      family: "ECDSA",
      standard: "FIPS 186-5",
      category: "SIGNATURE",
      nistLevel: undefined,
      publicKeyBytes: 65,
      secretKeyBytes: 32,
      seedBytes: undefined,
      signatureBytes: 72,
      minSignatureBytes: 8,
      oid: "1.2.840.10045.2.1",
    }),
    // Object identifiers of the draft, section 6.
    "MLDSA44-Ed25519-SHA512": composite("MLDSA44-Ed25519-SHA512", 39),
    "MLDSA65-Ed25519-SHA512": composite("MLDSA65-Ed25519-SHA512", 48),
    "MLDSA65-ECDSA-P256-SHA512": composite("MLDSA65-ECDSA-P256-SHA512", 45),
    "MLDSA87-ECDSA-P384-SHA512": composite("MLDSA87-ECDSA-P384-SHA512", 49),
  },
);

/** All KEM parameter sets by name, in display order. */
export const kemAlgorithms: Readonly<Record<KemAlgorithm, KemParameterSet>> = Object.freeze({
  // FIPS 203, table 3; object identifiers of RFC 9935, section 3.
  "ML-KEM-512": mlKem("ML-KEM-512", 1, 800, 1632, 768, 1),
  "ML-KEM-768": mlKem("ML-KEM-768", 3, 1184, 2400, 1088, 2),
  "ML-KEM-1024": mlKem("ML-KEM-1024", 5, 1568, 3168, 1568, 3),
  // draft-connolly-cfrg-xwing-kem-11: sizes of section 5.1, object identifier of section 5.8. The draft
  // targets category 1 and uses ML-KEM-768 instead of ML-KEM-512 as a margin (section 1.2).
  "X-Wing": Object.freeze({
    name: "X-Wing",
    family: "X-Wing",
    standard: "draft-connolly-cfrg-xwing-kem",
    category: "KEM",
    nistLevel: 1,
    publicKeyBytes: 1216,
    secretKeyBytes: 32,
    seedBytes: 32,
    ciphertextBytes: 1120,
    sharedSecretBytes: 32,
    oid: "1.3.6.1.4.1.62253.25722",
  }),
});

/** All parameter sets, by name. */
export const algorithms: Readonly<Record<Algorithm, AlgorithmInfo>> = Object.freeze({
  ...signatureAlgorithms,
  ...kemAlgorithms,
});

/** Returns whether a name is a signature parameter set. Names are case-sensitive. */
export function isSignatureAlgorithm(name: string): name is SignatureAlgorithm {
  return Object.hasOwn(signatureAlgorithms, name);
}

/** Returns whether a name is an ML-DSA parameter set. Names are case-sensitive. */
export function isMlDsaAlgorithm(name: string): name is MlDsaAlgorithm {
  return isSignatureAlgorithm(name) && signatureAlgorithms[name].family === "ML-DSA";
}

/** Returns whether a name is a composite. Names are case-sensitive. */
export function isCompositeAlgorithm(name: string): name is CompositeAlgorithm {
  return Object.hasOwn(compositeHalves, name);
}

/** Returns whether a message can be signed as it arrives: see `CryptoProvider.startRepresentative`. */
export function hasRepresentative(name: string): name is MlDsaAlgorithm | CompositeAlgorithm {
  return isMlDsaAlgorithm(name) || isCompositeAlgorithm(name);
}

/** Returns whether a signature of an algorithm can have this many bytes. ECDSA uses DER here. */
export function isSignatureLength(algorithm: SignatureAlgorithm, length: number): boolean {
  const { minSignatureBytes, signatureBytes } = signatureAlgorithms[algorithm];
  return length >= minSignatureBytes && length <= signatureBytes;
}

/** Describes the length of an algorithm's signatures, in bytes: "2420", "3317 to 3381". */
export function describeSignatureLength(algorithm: SignatureAlgorithm): string {
  const { minSignatureBytes, signatureBytes } = signatureAlgorithms[algorithm];
  return minSignatureBytes === signatureBytes
    ? `${signatureBytes}`
    : `${minSignatureBytes} to ${signatureBytes}`;
}

/** Returns whether a name is an ML-KEM parameter set. Names are case-sensitive. */
export function isMlKemAlgorithm(name: string): name is MlKemAlgorithm {
  return isKemAlgorithm(name) && kemAlgorithms[name].family === "ML-KEM";
}

/** Returns whether a name is a KEM parameter set. Names are case-sensitive. */
export function isKemAlgorithm(name: string): name is KemAlgorithm {
  return Object.hasOwn(kemAlgorithms, name);
}

function mlDsa(
  name: MlDsaAlgorithm,
  nistLevel: 2 | 3 | 5,
  publicKeyBytes: number,
  secretKeyBytes: number,
  signatureBytes: number,
  oidArc: number,
): SignatureParameterSet {
  const sizes = { publicKeyBytes, secretKeyBytes, seedBytes: 32, signatureBytes };
  return signatureSet({ name, family: "ML-DSA", standard: "FIPS 204", nistLevel, ...sizes }, oidArc);
}

/** A set of NIST's, whose signatures have one length. */
function signatureSet(
  fields: Omit<SignatureParameterSet, "category" | "minSignatureBytes" | "oid">,
  oidArc: number,
): SignatureParameterSet {
  return Object.freeze({
    ...fields,
    category: "SIGNATURE",
    minSignatureBytes: fields.signatureBytes,
    oid: `2.16.840.1.101.3.4.3.${oidArc}`,
  });
}

/** The keys and signatures of both halves, one after the other (section 4 of the draft). */
function composite(name: CompositeAlgorithm, oidArc: number): SignatureParameterSet {
  const halves = compositeHalves[name];
  const [first, second] = [mlDsaSets[halves.mlDsa], classicalSizes[halves.classical]];
  return Object.freeze({
    name,
    family: "Composite",
    standard: compositeDraft,
    category: "SIGNATURE",
    nistLevel: first.nistLevel,
    publicKeyBytes: first.publicKeyBytes + second.publicKeyBytes,
    secretKeyBytes: (first.seedBytes ?? 0) + second.secretKeyBytes,
    seedBytes: undefined,
    signatureBytes: first.signatureBytes + second.signatureBytes,
    minSignatureBytes: first.signatureBytes + second.minSignatureBytes,
    oid: `1.3.6.1.5.5.7.6.${oidArc}`,
  });
}

/** `n` is the security parameter of FIPS 205 in bytes: a public key has 2n bytes, a secret key 4n. */
function slhDsa(
  name: SlhDsaAlgorithm,
  nistLevel: 1 | 3 | 5,
  n: number,
  signatureBytes: number,
  oidArc: number,
): SignatureParameterSet {
  const sizes = { publicKeyBytes: 2 * n, secretKeyBytes: 4 * n, seedBytes: undefined, signatureBytes };
  return signatureSet({ name, family: "SLH-DSA", standard: "FIPS 205", nistLevel, ...sizes }, oidArc);
}

function mlKem(
  name: MlKemAlgorithm,
  nistLevel: 1 | 3 | 5,
  publicKeyBytes: number,
  secretKeyBytes: number,
  ciphertextBytes: number,
  oidArc: number,
): KemParameterSet {
  return Object.freeze({
    name,
    family: "ML-KEM",
    standard: "FIPS 203",
    category: "KEM",
    nistLevel,
    publicKeyBytes,
    secretKeyBytes,
    seedBytes: 64,
    ciphertextBytes,
    sharedSecretBytes: 32,
    oid: `2.16.840.1.101.3.4.4.${oidArc}`,
  });
}
