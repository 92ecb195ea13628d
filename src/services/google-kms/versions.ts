import type { ServiceImpl } from "@connectrpc/connect";
import {
  type CryptoKeyVersion,
  CryptoKeyVersion_CryptoKeyVersionState as VersionState,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { refuseField } from "../../errors.ts";
import type { Principal } from "../../records/ownership.ts";
import type { Operation } from "../kms/event.ts";
import { aboutHandle, findKey, keyNotFound } from "../kms/find-key.ts";
import { writeName } from "../kms/handle.ts";
import { keyDamaged } from "../kms/key-cache.ts";
import { allKeys, nameKeyList } from "../kms/key-filter.ts";
import { destroyKey, disableKey, enableKey, restoreKey } from "../kms/life-cycle.ts";
import { addVersion, requireName } from "../kms/named-keys.ts";
import type { KeyName, KeyRecord } from "../kms/record.ts";
import { type GoogleDeps, readCaller, readOwner } from "./calls.ts";
import { readKeyName } from "./crypto-keys.ts";
import { defaultDestroySeconds, packVersion } from "./pack.ts";
import { readPage } from "./pages.ts";
import { formatCryptoKeyName, parseCryptoKeyVersionName } from "./resource-names.ts";

type Calls = Pick<
  ServiceImpl<typeof KeyManagementService>,
  | "listCryptoKeyVersions"
  | "getCryptoKeyVersion"
  | "createCryptoKeyVersion"
  | "updateCryptoKeyVersion"
  | "destroyCryptoKeyVersion"
  | "restoreCryptoKeyVersion"
>;

/** Implements the calls of versions. A version is a key of the key service. */
export function versionCalls(deps: GoogleDeps): Calls {
  const { keys } = deps;
  const describe = async (name: string, principal: Principal) => {
    const { record, named } = await findVersion(deps, name, principal, "GET_KEY");
    return packVersion(record, named);
  };
  return {
    async listCryptoKeyVersions({ parent, filter, orderBy, pageSize, pageToken }, context) {
      if (filter !== "") throw refuseField("filter", "is not supported; leave it out");
      if (orderBy !== "")
        throw refuseField("orderBy", "is not supported; rows are in the order of their creation");
      const owner = readOwner(context);
      const named = await requireName(deps, owner, readKeyName("parent", parent));
      const query = { ...allKeys, name: named.name };
      const page = readPage({ pageSize, pageToken }, nameKeyList(owner, query));
      const { rows, nextPageToken } = await keys.list(page, owner, query);
      return {
        cryptoKeyVersions: rows.map(({ record }) => packVersion(record, named)),
        nextPageToken,
        totalSize: await keys.count(owner, query),
      };
    },
    getCryptoKeyVersion: ({ name }, context) => describe(name, readCaller(context).principal),
    async createCryptoKeyVersion({ parent }, context) {
      const { principal } = readCaller(context);
      const named = await requireName(deps, principal, readKeyName("parent", parent));
      if (named.isImportOnly) throw refuseField("parent", "is importOnly; call ImportCryptoKeyVersion");
      return packVersion(await addVersion(deps, principal, named.name), named);
    },
    async updateCryptoKeyVersion({ cryptoKeyVersion, updateMask }, context) {
      const { name = "", state = VersionState.CRYPTO_KEY_VERSION_STATE_UNSPECIFIED } = cryptoKeyVersion ?? {};
      requireStateOnly(updateMask?.paths ?? []);
      const caller = readCaller(context);
      const { record } = await findVersion(deps, name, caller.principal, "GET_KEY", "cryptoKeyVersion.name");
      const input = { keyId: toHandle(name, "cryptoKeyVersion.name"), ...caller };
      if (state === VersionState.ENABLED) {
        if (record.state !== "ACTIVE" && record.state !== "ROTATED") await enableKey(deps, input);
      } else if (state === VersionState.DISABLED) {
        if (record.state !== "DISABLED") await disableKey(deps, input);
      } else throw refuseField("cryptoKeyVersion.state", "must be ENABLED or DISABLED");
      return describe(name, caller.principal);
    },
    async destroyCryptoKeyVersion({ name }, context) {
      const caller = readCaller(context);
      const { named } = await findVersion(deps, name, caller.principal, "DESTROY");
      const afterSeconds = named.destroyAfterSeconds ?? defaultDestroySeconds;
      await destroyKey(deps, { keyId: toHandle(name), afterSeconds, ...caller });
      return describe(name, caller.principal);
    },
    async restoreCryptoKeyVersion({ name }, context) {
      const caller = readCaller(context);
      await restoreKey(deps, { keyId: toHandle(name), ...caller });
      return describe(name, caller.principal);
    },
  };
}

/** The handle of a version in the key service. @throws FIELD_INVALID */
export function toHandle(name: string, field = "name"): string {
  const parsed = parseCryptoKeyVersionName(field, name);
  return writeName(formatCryptoKeyName(parsed), parsed.version);
}

/** Finds a version that the caller may use. @throws FIELD_INVALID, KEY_NOT_FOUND, GRANT_MISSING, KEY_DAMAGED */
export async function findVersion(
  deps: GoogleDeps,
  name: string,
  principal: Principal,
  operation: Operation,
  field = "name",
): Promise<{ readonly record: KeyRecord; readonly named: KeyName }> {
  const handle = toHandle(name, field);
  const { key } = await findKey(deps, { handle, principal, operation, about: aboutHandle(handle) });
  const { record } = key;
  if (!key.isIntact) throw keyDamaged(record.keyId);
  const named = await deps.keys.names.find(record.owner, record.name ?? "");
  if (named === undefined) throw keyNotFound(handle);
  return { record, named };
}

function requireStateOnly(paths: readonly string[]): void {
  if (paths.length === 0) throw refuseField("updateMask", 'is empty; send "state"');
  const other = paths.find((path) => path !== "state");
  if (other !== undefined) throw refuseField("updateMask", `"${other}" cannot be changed; only "state" can`);
}

/** The message of a version, for other files. */
export type VersionMessage = Partial<CryptoKeyVersion>;
