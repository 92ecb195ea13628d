/** What Google's protos do not say about their services: who may call, and which calls this server has. */
import { Access } from "#gen/qsp/access_pb.ts";
import type { RpcProfile, ServiceProfiles } from "../../protocol/service-profile.ts";

/** A call of this server, for every user. */
function supported(comment: string): RpcProfile {
  return { access: Access.AUTHENTICATED, comment };
}

/** A call that is refused with CALL_UNSUPPORTED, after its caller has shown a token. */
const unsupported: RpcProfile = { access: Access.AUTHENTICATED };

/** By the full names of the services. A call without a row keeps the server from starting. */
export const googleProfiles: ServiceProfiles = {
  "google.cloud.kms.v1.KeyManagementService": {
    restStyle: "google",
    comment:
      "Google's Cloud KMS API, for programs that use Google's clients. Calls that are not listed fail with CALL_UNSUPPORTED.",
    rpcs: {
      ListKeyRings: unsupported,
      GetKeyRing: unsupported,
      CreateKeyRing: unsupported,

      ListCryptoKeys: unsupported,
      GetCryptoKey: unsupported,
      CreateCryptoKey: unsupported,
      UpdateCryptoKey: unsupported,

      ListCryptoKeyVersions: unsupported,
      GetCryptoKeyVersion: unsupported,
      CreateCryptoKeyVersion: unsupported,
      UpdateCryptoKeyVersion: unsupported,
      DestroyCryptoKeyVersion: unsupported,
      RestoreCryptoKeyVersion: unsupported,
      GetPublicKey: unsupported,

      AsymmetricSign: unsupported,
      Decapsulate: unsupported,
      GenerateRandomBytes: supported(
        "Generates 8 to 1024 random bytes, with their CRC32C. Any protection level gives bytes of the server's own " +
          "random generator.",
      ),

      ListImportJobs: unsupported,
      GetImportJob: unsupported,
      CreateImportJob: unsupported,
      ImportCryptoKeyVersion: unsupported,

      // Symmetric and MAC keys, RSA decryption, and keys that other keys wrap: this server has none of them.
      UpdateCryptoKeyPrimaryVersion: unsupported,
      Encrypt: unsupported,
      Decrypt: unsupported,
      RawEncrypt: unsupported,
      RawDecrypt: unsupported,
      AsymmetricDecrypt: unsupported,
      MacSign: unsupported,
      MacVerify: unsupported,
      ImportTrustedKeyWrappedCryptoKeyVersion: unsupported,
      ExportTrustedKeyWrappedCryptoKeyVersion: unsupported,

      // Versions are destroyed, but the names of keys stay taken.
      DeleteCryptoKey: unsupported,
      DeleteCryptoKeyVersion: unsupported,
      ListRetiredResources: unsupported,
      GetRetiredResource: unsupported,
    },
  },
  "google.cloud.location.Locations": {
    restStyle: "google",
    comment: "Google's Locations API, which belongs to each of Google's services.",
    rpcs: {
      ListLocations: supported("Lists the one location that this server names itself, global."),
      GetLocation: supported(
        "Returns a location. Every well-formed location exists, because a location is only a part of names here.",
      ),
    },
  },
};
