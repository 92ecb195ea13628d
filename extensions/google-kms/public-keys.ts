import type { ServiceImpl } from "@connectrpc/connect";
import {
  PublicKey_PublicKeyFormat as Format,
  PublicKey_PublicKeyFormatSchema as FormatSchema,
  ProtectionLevel,
  CryptoKeyVersion_CryptoKeyVersionState as VersionState,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { encodePublicKeyDer, encodePublicKeyPem } from "../../src/crypto/key-encoding.ts";
import { refuse, refuseField } from "../../src/errors.ts";
import type { KeyRecord } from "../../src/services/kms/tables.ts";
import { nameValue } from "./algorithms.ts";
import { type GoogleDeps, readCaller } from "./calls.ts";
import { packCrc32c } from "./crc32c.ts";
import { findRawFormat, packVersion } from "./pack.ts";
import { findVersion } from "./versions.ts";

type Calls = Pick<ServiceImpl<typeof KeyManagementService>, "getPublicKey">;

/** Implements the call that returns a public key. */
export function publicKeyCalls(deps: GoogleDeps): Calls {
  return {
    async getPublicKey({ name, publicKeyFormat }, context) {
      const { principal } = readCaller(context);
      const { record, named } = await findVersion(deps, name, principal);
      const { state, algorithm } = packVersion(record, named);
      if (state !== VersionState.ENABLED)
        throw refuse(
          "KEY_STATE_INVALID",
          `${name} is ${record.state}; only ENABLED versions return their public key`,
          { keyId: name, state: record.state, operation: "GET_KEY" },
        );
      const format = publicKeyFormat === Format.PUBLIC_KEY_FORMAT_UNSPECIFIED ? Format.PEM : publicKeyFormat;
      const { data, pem } = encode(record, format);
      return {
        name,
        ...(algorithm !== undefined && { algorithm }),
        protectionLevel: ProtectionLevel.SOFTWARE,
        publicKeyFormat: format,
        publicKey: { data, crc32cChecksum: packCrc32c(data) },
        ...(pem !== undefined && { pem, pemCrc32c: packCrc32c(data) }),
      };
    },
  };
}

/** @throws FIELD_INVALID for a format that the algorithm does not have */
function encode({ algorithm, publicKey }: KeyRecord, format: Format) {
  if (format === Format.PEM) {
    const pem = encodePublicKeyPem(algorithm, publicKey);
    return { data: new TextEncoder().encode(pem), pem };
  }
  if (format === Format.DER) return { data: encodePublicKeyDer(algorithm, publicKey) };
  const raw = findRawFormat(algorithm);
  if (format === raw) return { data: publicKey };
  const more = raw === undefined ? "" : `, ${nameValue(FormatSchema, raw)}`;
  throw refuseField("publicKeyFormat", `is not available for ${algorithm}; send one of PEM, DER${more}`);
}
