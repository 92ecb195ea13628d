/** The calls that use a key, or the random generator. */
import { randomBytes } from "node:crypto";
import type { ServiceImpl } from "@connectrpc/connect";
import { ProtectionLevel } from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type {
  GenerateRandomBytesRequest,
  KeyManagementService,
} from "#gen/google/cloud/kms/v1/service_pb.ts";
import { refuseField } from "../../errors.ts";
import { packCrc32c } from "./crc32c.ts";
import { parseLocationName } from "./resource-names.ts";

/** Implements the calls. */
export function useCalls(): Pick<ServiceImpl<typeof KeyManagementService>, "generateRandomBytes"> {
  return {
    generateRandomBytes: (req) => {
      const data = generateRandomBytes(req);
      return { data, dataCrc32c: packCrc32c(data) };
    },
  };
}

const minLengthBytes = 8;
const maxLengthBytes = 1024;

/**
 * Google has only HSM here, so its clients must ask for it. The answer does not name a level. The bytes come from
 * OpenSSL's generator (NIST SP 800-90A), which the operating system seeds.
 */
const acceptedLevels: readonly ProtectionLevel[] = [
  ProtectionLevel.PROTECTION_LEVEL_UNSPECIFIED,
  ProtectionLevel.SOFTWARE,
  ProtectionLevel.HSM,
];

/** Generates random bytes. @throws FIELD_INVALID */
function generateRandomBytes({
  location,
  lengthBytes,
  protectionLevel,
}: Pick<
  GenerateRandomBytesRequest,
  "location" | "lengthBytes" | "protectionLevel"
>): Uint8Array<ArrayBuffer> {
  parseLocationName("location", location);
  if (lengthBytes < minLengthBytes || lengthBytes > maxLengthBytes)
    throw refuseField("lengthBytes", `is ${lengthBytes}; it must be ${minLengthBytes} to ${maxLengthBytes}`);
  if (!acceptedLevels.includes(protectionLevel))
    throw refuseField("protectionLevel", "is not supported; send SOFTWARE or HSM, or leave it out");
  return new Uint8Array(randomBytes(lengthBytes));
}
