/** The key service's import methods, with the algorithms of their public keys. */
import { ImportJob_ImportMethod as Method } from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type { WrappingMethod } from "../../src/crypto/hpke.ts";

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
