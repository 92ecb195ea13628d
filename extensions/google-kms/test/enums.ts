/** Google's enums, under shorter names. */
export {
  CryptoKey_CryptoKeyPurpose as Purpose,
  CryptoKeyVersion_CryptoKeyVersionAlgorithm as VersionAlgorithm,
  CryptoKeyVersion_CryptoKeyVersionAlgorithmSchema as VersionAlgorithmSchema,
  CryptoKeyVersion_CryptoKeyVersionState as VersionState,
  ImportJob_ImportMethod as ImportMethod,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
