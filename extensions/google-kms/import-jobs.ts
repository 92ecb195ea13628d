import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  PublicKey_PublicKeyFormat as Format,
  ImportJob_ImportMethodSchema,
  type ImportJobSchema,
  ImportJob_ImportJobState as JobState,
  ImportJob_ImportMethod as Method,
  ProtectionLevel,
  PublicKey_PublicKeyFormatSchema,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type {
  ImportCryptoKeyVersionRequest,
  KeyManagementService,
} from "#gen/google/cloud/kms/v1/service_pb.ts";
import type { WrappingMethod } from "../../src/crypto/hpke.ts";
import { encodePublicKeyPem } from "../../src/crypto/key-encoding.ts";
import { refuse, refuseField } from "../../src/errors.ts";
import { beginImport, unwrapKey } from "../../src/services/kms/import.ts";
import type { ImportRecord } from "../../src/services/kms/tables.ts";
import { findAlgorithm, findGoogleAlgorithm, importMethods, nameValue } from "./algorithms.ts";
import { type GoogleDeps, readCaller, readOwner, requireRing } from "./calls.ts";
import { packCrc32c } from "./crc32c.ts";
import { requireSoftware } from "./crypto-keys.ts";
import { jobFields } from "./filter-fields.ts";
import { prepareList, rowsBelow } from "./lists.ts";
import { putVersion, requireName } from "./named-keys.ts";
import { findRawFormat, packVersion } from "./pack.ts";
import { importJobNotFound, importJobTaken } from "./reasons.ts";
import { checkName, checkResourceId } from "./resource-names.ts";

type Calls = Pick<
  ServiceImpl<typeof KeyManagementService>,
  "listImportJobs" | "getImportJob" | "createImportJob" | "importCryptoKeyVersion"
>;

/** Implements the import job calls. A job imports any number of keys until it expires. */
export function importJobCalls(deps: GoogleDeps): Calls {
  const { keys, now } = deps;
  const pack = (record: ImportRecord, format?: Format) => packJob(record, now(), format);
  return {
    async listImportJobs({ parent, ...request }, context) {
      const ring = checkName("key ring", "parent", parent);
      const owner = readOwner(context);
      const read = prepareList(keys.imports, request, owner, {
        ...rowsBelow("job_name", `${ring}/importJobs/`),
        fields: jobFields(now()),
        pack: (record) => pack(record),
        nameOf: ({ jobName }) => jobName,
      });
      await requireRing(deps, owner.owner, ring);
      const { records: importJobs, ...page } = await read();
      return { ...page, importJobs };
    },
    async getImportJob({ name, publicKeyFormat }, context) {
      const job = checkName("import job", "name", name);
      return pack(await requireJob(deps, readOwner(context).owner, job), publicKeyFormat);
    },
    async createImportJob({ parent, importJobId, importJob }, context) {
      const ring = checkName("key ring", "parent", parent);
      const jobName = `${ring}/importJobs/${checkResourceId("importJobId", importJobId)}`;
      const caller = readCaller(context);
      const { owner } = readOwner(context);
      const method = readMethod(importJob?.importMethod ?? Method.IMPORT_METHOD_UNSPECIFIED);
      requireSoftware(
        "importJob.protectionLevel",
        importJob?.protectionLevel ?? ProtectionLevel.PROTECTION_LEVEL_UNSPECIFIED,
      );
      if (importJob !== undefined && importJob.cryptoKeyBackend !== "")
        throw refuseField("importJob.cryptoKeyBackend", "is for external key managers; leave it out");
      await requireRing(deps, owner, ring);
      const taken = () => refuse(importJobTaken, `import job ${jobName} already exists`, { name: jobName });
      if ((await keys.imports.findJob(owner, jobName)) !== undefined) throw taken();
      return pack(await beginImport(deps, { method, job: { name: jobName, taken }, ...caller }));
    },
    async importCryptoKeyVersion(req, context) {
      const { principal } = readCaller(context);
      const named = await requireName(deps, principal, checkName("key", "parent", req.parent));
      if (req.cryptoKeyVersion !== "")
        throw refuseField("cryptoKeyVersion", "is for importing into an existing version; leave it out");
      const own = findGoogleAlgorithm(named.algorithm, { isExternalMu: named.signsMu });
      if (findAlgorithm(req.algorithm) !== own)
        throw refuseField("algorithm", "must be the algorithm of the key's version template");
      const jobName = checkName("import job", "importJob", req.importJob);
      const job = await requireJob(deps, principal.userId, jobName);
      if (job.expiresAt <= now())
        throw refuse("IMPORT_TOKEN_INVALID", `import job ${job.jobName} has expired; create a new one`, {
          importToken: job.jobName,
        });
      const secretKey = await unwrapKey(deps, job, named.algorithm, readWrappedKey(req));
      try {
        const origin = { isImported: true };
        return packVersion(await putVersion(deps, principal, named.name, secretKey, origin), named);
      } finally {
        secretKey.erase();
      }
    },
  };
}

async function requireJob({ keys }: GoogleDeps, owner: string, name: string): Promise<ImportRecord> {
  const job = await keys.imports.findJob(owner, name);
  if (job === undefined) throw refuse(importJobNotFound, `import job ${name} does not exist`, { name });
  return job;
}

function readMethod(method: Method): WrappingMethod {
  const found = importMethods.find(({ google }) => google === method);
  if (found !== undefined) return found.own;
  const names = importMethods.map(({ google }) => nameValue(ImportJob_ImportMethodSchema, google)).join(", ");
  throw refuseField("importJob.importMethod", `is not supported; send one of ${names}`);
}

function readWrappedKey({ wrappedKey, wrappedKeyMaterial }: ImportCryptoKeyVersionRequest): Uint8Array {
  if (wrappedKey.length > 0) return wrappedKey;
  if (wrappedKeyMaterial.case !== undefined)
    throw refuseField("rsaAesWrappedKey", "is for RSA; send wrappedKey");
  throw refuseField("wrappedKey", "is missing; send the HPKE enc, followed by the ciphertext");
}

function packJob(
  { jobName, method, publicKey, createdAt, expiresAt }: ImportRecord,
  now: Date,
  format: Format = Format.PUBLIC_KEY_FORMAT_UNSPECIFIED,
): MessageInitShape<typeof ImportJobSchema> {
  const found = importMethods.find(({ own }) => own === method);
  const isActive = expiresAt > now;
  const created = timestampFromDate(createdAt);
  return {
    name: jobName,
    ...(found && { importMethod: found.google }),
    protectionLevel: ProtectionLevel.SOFTWARE,
    createTime: created,
    generateTime: created,
    expireTime: timestampFromDate(expiresAt),
    state: isActive ? JobState.ACTIVE : JobState.EXPIRED,
    ...(isActive
      ? packWrappingKey(publicKey, found?.kem, format)
      : { expireEventTime: timestampFromDate(expiresAt) }),
  };
}

/** The public key: raw for HPKE, unless the caller asks for PEM. */
function packWrappingKey(
  data: Uint8Array,
  kem: (typeof importMethods)[number]["kem"] | undefined,
  format: Format,
) {
  if (format === Format.PEM && kem !== undefined)
    return { publicKeyFormat: format, publicKey: { pem: encodePublicKeyPem(kem, data) } };
  const raw = findRawFormat(kem ?? "") ?? Format.NIST_PQC;
  if (format !== Format.PUBLIC_KEY_FORMAT_UNSPECIFIED && format !== raw)
    throw refuseField(
      "publicKeyFormat",
      `must be PEM or ${nameValue(PublicKey_PublicKeyFormatSchema, raw)} for this import job`,
    );
  return { publicKeyFormat: raw, publicKey: { data, dataCrc32c: packCrc32c(data) } };
}
