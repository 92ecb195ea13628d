/** Calls that use a key or the random generator. */
import { randomBytes } from "node:crypto";
import type { ServiceImpl } from "@connectrpc/connect";
import { ProtectionLevel } from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type {
  AsymmetricSignRequest,
  GenerateRandomBytesRequest,
  KeyManagementService,
} from "#gen/google/cloud/kms/v1/service_pb.ts";
import { refuse, refuseField } from "../../src/errors.ts";
import type { KeyInput } from "../../src/services/kms/attempt.ts";
import { decapsulate } from "../../src/services/kms/encapsulate.ts";
import { type Signed, sign } from "../../src/services/kms/sign.ts";
import { findGoogleAlgorithm, type SigningInput } from "./algorithms.ts";
import { type GoogleDeps, readCaller } from "./calls.ts";
import { checkCrc32c, packCrc32c } from "./crc32c.ts";
import { checkName } from "./resource-names.ts";
import { signDigest } from "./sign-digest.ts";
import { type FoundVersion, findVersion, onVersion } from "./versions.ts";

type Calls = Pick<
  ServiceImpl<typeof KeyManagementService>,
  "asymmetricSign" | "decapsulate" | "generateRandomBytes"
>;

const none = new Uint8Array();

export function useCalls(deps: GoogleDeps): Calls {
  return {
    async asymmetricSign(req, context) {
      const verifiedDataCrc32c = checkCrc32c("dataCrc32c", req.data, req.dataCrc32c);
      const digest = req.digest?.digest.value ?? none;
      const verifiedDigestCrc32c = checkCrc32c("digestCrc32c", digest, req.digestCrc32c);
      const caller = readCaller(context);
      const version = await findVersion(deps, req.name, caller.principal);
      const { signature } = await onVersion(version.record, (handle) =>
        signVersion(deps, req, version, { handle, ...caller }),
      );
      return {
        name: req.name,
        signature,
        signatureCrc32c: packCrc32c(signature),
        verifiedDataCrc32c,
        verifiedDigestCrc32c,
        protectionLevel: ProtectionLevel.SOFTWARE,
      };
    },
    async decapsulate({ name, ciphertext, ciphertextCrc32c }, context) {
      const verifiedCiphertextCrc32c = checkCrc32c("ciphertextCrc32c", ciphertext, ciphertextCrc32c);
      const caller = readCaller(context);
      const { record } = await findVersion(deps, name, caller.principal);
      const { sharedSecret } = await onVersion(record, (handle) =>
        decapsulate(deps, { handle, ciphertext, ...caller }),
      );
      return {
        name,
        sharedSecret,
        sharedSecretCrc32c: packCrc32c(sharedSecret),
        verifiedCiphertextCrc32c,
        protectionLevel: ProtectionLevel.SOFTWARE,
      };
    },
    generateRandomBytes: (req) => {
      const data = generateRandomBytes(req);
      return { data, dataCrc32c: packCrc32c(data) };
    },
  };
}

/** What each kind of key signs, for error messages. */
const inputs: Readonly<Record<SigningInput, string>> = {
  data: "data",
  externalMu: "digest.externalMu",
  sha256: "digest.sha256 or data",
};

/** Signs the request's input if the key's algorithm accepts it. */
async function signVersion(
  deps: GoogleDeps,
  { name, data, digest }: AsymmetricSignRequest,
  { record, named }: FoundVersion,
  input: KeyInput,
): Promise<Signed> {
  const found = findGoogleAlgorithm(record.algorithm, { isExternalMu: named.signsMu });
  if (found?.signingInput === undefined)
    throw refuse(
      "KEY_USAGE_MISMATCH",
      `${name} is an ${record.algorithm} key, which cannot sign over Google's interface`,
      { keyId: record.keyId, algorithm: record.algorithm },
    );
  const takes = found.signingInput;
  const given = digest?.digest;
  if (given?.case !== undefined && data.length > 0)
    throw refuseField("digest", "cannot be combined with data; send only one of them");
  if (given?.case === undefined) {
    if (data.length === 0) throw refuseField("data", `is missing; send ${inputs[takes]}`);
    if (takes === "externalMu") throw refuseField("data", `does not fit the key; send ${inputs[takes]}`);
    return sign(deps, { ...input, data, context: none, mu: none });
  }
  if (given.case !== takes) throw refuseField("digest", `does not fit the key; send ${inputs[takes]}`);
  const bytes = takes === "externalMu" ? 64 : 32;
  if (given.value.length !== bytes)
    throw refuseField(
      `digest.${given.case}`,
      `is ${given.value.length} bytes; it must be ${bytes}`,
      "LENGTH_INVALID",
    );
  if (takes === "externalMu") return sign(deps, { ...input, data: none, context: none, mu: given.value });
  return signDigest(deps, { ...input, digest: given.value });
}

const minLengthBytes = 8;
const maxLengthBytes = 1024;

/**
 * Google has only HSM here, so its clients must ask for it; the answer names no level. The bytes come from
 * OpenSSL's generator (NIST SP 800-90A), seeded by the operating system.
 */
const acceptedLevels: readonly ProtectionLevel[] = [
  ProtectionLevel.PROTECTION_LEVEL_UNSPECIFIED,
  ProtectionLevel.SOFTWARE,
  ProtectionLevel.HSM,
];

/**
 * Generates random bytes.
 *
 * @throws FIELD_INVALID
 */
function generateRandomBytes({ location, lengthBytes, protectionLevel }: GenerateRandomBytesRequest) {
  checkName("location", "location", location);
  if (lengthBytes < minLengthBytes || lengthBytes > maxLengthBytes)
    throw refuseField("lengthBytes", `is ${lengthBytes}; it must be ${minLengthBytes} to ${maxLengthBytes}`);
  if (!acceptedLevels.includes(protectionLevel))
    throw refuseField("protectionLevel", "is not supported; send SOFTWARE or HSM, or leave it out");
  return new Uint8Array(randomBytes(lengthBytes));
}
