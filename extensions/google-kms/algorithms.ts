/** Maps Google's names of algorithms and import methods to ours. */
import type { DescEnum } from "@bufbuild/protobuf";
import {
  ImportJob_ImportMethod as Method,
  CryptoKey_CryptoKeyPurpose as Purpose,
  CryptoKey_CryptoKeyPurposeSchema as PurposeSchema,
  CryptoKeyVersion_CryptoKeyVersionAlgorithm as VersionAlgorithm,
  CryptoKeyVersion_CryptoKeyVersionAlgorithmSchema as VersionAlgorithmSchema,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type { KemAlgorithm, SignatureAlgorithm } from "../../src/crypto/algorithms.ts";
import type { WrappingMethod } from "../../src/crypto/hpke.ts";
import { refuseField } from "../../src/errors.ts";

/** Our algorithm names. X-Wing combines ML-KEM-768 and X25519 (draft-connolly-cfrg-xwing-kem). */
export type OwnAlgorithm = SignatureAlgorithm | KemAlgorithm | "X-Wing";

/**
 * What a signing key signs: data, the representative µ of FIPS 204 (algorithm 7, line 6), or a SHA-256
 * digest.
 */
export type SigningInput = "data" | "externalMu" | "sha256";

export interface GoogleAlgorithm {
  readonly algorithm: VersionAlgorithm;
  readonly own: OwnAlgorithm;
  /** ASYMMETRIC_SIGN or KEY_ENCAPSULATION. */
  readonly purpose: Purpose;
  /** Undefined for key encapsulation. */
  readonly signingInput: SigningInput | undefined;
}

/** Supported algorithms, in the order in which error messages list them. */
export const googleAlgorithms: readonly GoogleAlgorithm[] = [
  signs(VersionAlgorithm.PQ_SIGN_ML_DSA_44, "ML-DSA-44", "data"),
  signs(VersionAlgorithm.PQ_SIGN_ML_DSA_65, "ML-DSA-65", "data"),
  signs(VersionAlgorithm.PQ_SIGN_ML_DSA_87, "ML-DSA-87", "data"),
  signs(VersionAlgorithm.PQ_SIGN_ML_DSA_44_EXTERNAL_MU, "ML-DSA-44", "externalMu"),
  signs(VersionAlgorithm.PQ_SIGN_ML_DSA_65_EXTERNAL_MU, "ML-DSA-65", "externalMu"),
  signs(VersionAlgorithm.PQ_SIGN_ML_DSA_87_EXTERNAL_MU, "ML-DSA-87", "externalMu"),
  signs(VersionAlgorithm.PQ_SIGN_SLH_DSA_SHA2_128S, "SLH-DSA-SHA2-128s", "data"),
  signs(VersionAlgorithm.EC_SIGN_P256_SHA256, "ECDSA-P256", "sha256"),
  encapsulates(VersionAlgorithm.ML_KEM_768, "ML-KEM-768"),
  encapsulates(VersionAlgorithm.ML_KEM_1024, "ML-KEM-1024"),
  encapsulates(VersionAlgorithm.KEM_XWING, "X-Wing"),
];

function signs(
  algorithm: VersionAlgorithm,
  own: SignatureAlgorithm,
  signingInput: SigningInput,
): GoogleAlgorithm {
  return { algorithm, own, purpose: Purpose.ASYMMETRIC_SIGN, signingInput };
}

function encapsulates(algorithm: VersionAlgorithm, own: OwnAlgorithm): GoogleAlgorithm {
  return { algorithm, own, purpose: Purpose.KEY_ENCAPSULATION, signingInput: undefined };
}

/** Finds a Google algorithm; undefined if it is not supported. */
export function findAlgorithm(algorithm: VersionAlgorithm): GoogleAlgorithm | undefined {
  return googleAlgorithms.find((one) => one.algorithm === algorithm);
}

/** Finds the Google algorithm for one of our keys; undefined if Google has none. */
export function findGoogleAlgorithm(
  own: OwnAlgorithm,
  { isExternalMu = false }: { readonly isExternalMu?: boolean } = {},
): GoogleAlgorithm | undefined {
  return googleAlgorithms.find(
    (one) => one.own === own && (one.signingInput === "externalMu") === isExternalMu,
  );
}

/**
 * Determines a new key's algorithm from its purpose.
 *
 * @param fields the request fields, by their JSON names
 * @throws FIELD_INVALID for an unsupported purpose or algorithm, or a mismatch of the two
 */
export function requireAlgorithm(
  { purpose, algorithm }: { readonly purpose: Purpose; readonly algorithm: VersionAlgorithm },
  fields: { readonly purpose: string; readonly algorithm: string },
): GoogleAlgorithm {
  const fitting = googleAlgorithms.filter((one) => one.purpose === purpose);
  if (fitting.length === 0)
    throw refuseField(
      fields.purpose,
      `${nameValue(PurposeSchema, purpose)} is not supported; send ASYMMETRIC_SIGN or KEY_ENCAPSULATION`,
    );
  const found = fitting.find((one) => one.algorithm === algorithm);
  if (found !== undefined) return found;
  const names = fitting.map((one) => nameValue(VersionAlgorithmSchema, one.algorithm)).join(", ");
  throw refuseField(
    fields.algorithm,
    `${nameValue(VersionAlgorithmSchema, algorithm)} is not supported for ${nameValue(PurposeSchema, purpose)}; send one of ${names}`,
  );
}

/** The key service's import methods, with the algorithms of their public keys. */
export const importMethods = [
  {
    google: Method.HPKE_KEM_XWING_HKDF_SHA256_AES_256_GCM,
    own: "HPKE_XWING_HKDF_SHA256_AES_256_GCM",
    kem: "X-Wing",
  },
  {
    google: Method.HPKE_KEM_ML_KEM_768_HKDF_SHA256_AES_256_GCM,
    own: "HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM",
    kem: "ML-KEM-768",
  },
  {
    google: Method.HPKE_KEM_ML_KEM_1024_HKDF_SHA256_AES_256_GCM,
    own: "HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM",
    kem: "ML-KEM-1024",
  },
] as const satisfies readonly { google: Method; own: WrappingMethod; kem: string }[];

/** An enum value's name, or its number if a newer client sends an unknown one. */
export function nameValue({ value: values }: DescEnum, value: number): string {
  return values[value]?.name ?? String(value);
}
