import type { Duration } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { type CryptoKey, ProtectionLevel } from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { refuseField } from "../../src/errors.ts";
import { requireAlgorithm } from "./algorithms.ts";
import { type GoogleDeps, readCaller, readOwner, requireMask, requireRing } from "./calls.ts";
import { keyFields } from "./filter-fields.ts";
import { prepareList, rowsBelow } from "./lists.ts";
import { changeLabels, createName, type NewName, requireName } from "./named-keys.ts";
import { packKey } from "./pack.ts";
import { checkCryptoKeyId, checkName } from "./resource-names.ts";

type Calls = Pick<
  ServiceImpl<typeof KeyManagementService>,
  "listCryptoKeys" | "getCryptoKey" | "createCryptoKey" | "updateCryptoKey"
>;

/** Implements the key calls. Google's key is a name in our key service. */
export function cryptoKeyCalls(deps: GoogleDeps): Calls {
  const { keys } = deps;
  return {
    async listCryptoKeys({ parent, ...request }, context) {
      const ring = checkName("key ring", "parent", parent);
      const owner = readOwner(context);
      const read = prepareList(keys.names, request, owner, {
        ...rowsBelow("key_name", `${ring}/cryptoKeys/`),
        fields: keyFields,
        pack: packKey,
        nameOf: ({ name }) => name,
      });
      await requireRing(deps, owner.owner, ring);
      const { records: cryptoKeys, ...page } = await read();
      return { ...page, cryptoKeys };
    },
    async getCryptoKey({ name }, context) {
      return packKey(await requireName(deps, readOwner(context), checkName("key", "name", name)));
    },
    async createCryptoKey({ parent, cryptoKeyId, cryptoKey, skipInitialVersionCreation }, context) {
      const ring = checkName("key ring", "parent", parent);
      const name = `${ring}/cryptoKeys/${checkCryptoKeyId("cryptoKeyId", cryptoKeyId)}`;
      const { principal } = readCaller(context);
      const given = readNewKey(name, cryptoKey);
      await requireRing(deps, principal.userId, ring);
      const hasVersion = !skipInitialVersionCreation && !given.isImportOnly;
      if (given.isImportOnly && !skipInitialVersionCreation)
        throw refuseField("skipInitialVersionCreation", "must be true for an importOnly key");
      return packKey(await createName(deps, principal, given, hasVersion));
    },
    async updateCryptoKey({ cryptoKey, updateMask }, context) {
      const name = checkName("key", "cryptoKey.name", cryptoKey?.name ?? "");
      requireMask(updateMask, "labels");
      const labels = checkLabels(cryptoKey?.labels ?? {});
      return packKey(await changeLabels(deps, readCaller(context).principal, name, labels));
    },
  };
}

function readNewKey(name: string, given: CryptoKey | undefined): NewName {
  if (given === undefined) throw refuseField("cryptoKey", "is missing; send at least its purpose");
  const { purpose, versionTemplate, labels, importOnly, destroyScheduledDuration } = given;
  const { algorithm = 0, protectionLevel = ProtectionLevel.PROTECTION_LEVEL_UNSPECIFIED } =
    versionTemplate ?? {};
  const fields = { purpose: "cryptoKey.purpose", algorithm: "cryptoKey.versionTemplate.algorithm" };
  const { own, signingInput } = requireAlgorithm({ purpose, algorithm }, fields);
  requireSoftware("cryptoKey.versionTemplate.protectionLevel", protectionLevel);
  if (given.cryptoKeyBackend !== "")
    throw refuseField("cryptoKey.cryptoKeyBackend", "is for keys in external key managers; leave it out");
  if (given.keyAccessJustificationsPolicy !== undefined)
    throw refuseField("cryptoKey.keyAccessJustificationsPolicy", "is not supported; leave it out");
  if (given.nextRotationTime !== undefined || given.rotationSchedule.case !== undefined)
    throw refuseField(
      "cryptoKey.rotationPeriod",
      "is for symmetric keys; leave it out, and add versions yourself",
    );
  return {
    name,
    algorithm: own,
    labels: checkLabels(labels),
    destroyAfterSeconds: readDestroySeconds(destroyScheduledDuration),
    isImportOnly: importOnly,
    signsMu: signingInput === "externalMu",
  };
}

/**
 * Rejects protection levels that the server does not have.
 *
 * @throws FIELD_INVALID
 */
export function requireSoftware(field: string, level: ProtectionLevel): void {
  if (level === ProtectionLevel.PROTECTION_LEVEL_UNSPECIFIED || level === ProtectionLevel.SOFTWARE) return;
  throw refuseField(field, "is not supported; send SOFTWARE or leave it out");
}

const daySeconds = 86_400;
const maxDestroyDays = 120;

function readDestroySeconds(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const seconds = Number(duration.seconds);
  if (duration.nanos === 0 && seconds >= daySeconds && seconds <= maxDestroyDays * daySeconds) return seconds;
  throw refuseField(
    "cryptoKey.destroyScheduledDuration",
    `is ${seconds} s; it must be 1 to ${maxDestroyDays} days`,
  );
}

const maxLabels = 64;

/**
 * Validates labels by Google's rules, which allow letters of all scripts.
 *
 * @throws FIELD_INVALID
 */
function checkLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const field = "cryptoKey.labels";
  const pairs = Object.entries(labels);
  if (pairs.length > maxLabels)
    throw refuseField(field, `has ${pairs.length} labels; send at most ${maxLabels}`);
  for (const [label, value] of pairs) {
    if (!/^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$/u.test(label))
      throw refuseField(
        field,
        `"${label}" must start with a lowercase letter, followed by up to 62 lowercase letters, digits, _ or -`,
      );
    if (!/^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$/u.test(value))
      throw refuseField(field, `the value of "${label}" must be up to 63 lowercase letters, digits, _ or -`);
  }
  return labels;
}
