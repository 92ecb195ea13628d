import { ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { sql } from "kysely";
import {
  type CryptoKeyVersion,
  CryptoKeyVersion_CryptoKeyVersionState as VersionState,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { refuseField, renameSubject } from "../../src/errors.ts";
import type { Principal } from "../../src/records/ownership.ts";
import { destroyKey, disableKey, enableKey, restoreKey } from "../../src/services/kms/life-cycle.ts";
import type { KeyName, KeyRecord } from "../../src/services/kms/tables.ts";
import { type GoogleDeps, narrowList, readCaller, readOwner } from "./calls.ts";
import { readKeyName } from "./crypto-keys.ts";
import { compileFilter } from "./filter.ts";
import { versionFields } from "./filter-fields.ts";
import { addVersion, requireName, requireVersion } from "./named-keys.ts";
import { defaultDestroySeconds, nameOfVersion, packDamaged, packVersion } from "./pack.ts";
import { listPage } from "./pages.ts";
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

/** Implements the version calls. A version is a key in the key service. */
export function versionCalls(deps: GoogleDeps): Calls {
  const { keys } = deps;
  const describe = async (name: string, principal: Principal) => {
    const { record, named } = await findVersion(deps, name, principal);
    return packVersion(record, named);
  };
  return {
    async listCryptoKeyVersions({ parent, filter, orderBy, pageSize, pageToken }, context) {
      const owner = readOwner(context);
      const named = await requireName(deps, owner, readKeyName("parent", parent));
      const ofKey = { name: JSON.stringify([named.name]), where: sql<boolean>`key_name = ${named.name}` };
      const narrowing = narrowList(ofKey, { filter, orderBy });
      const accepts = compileFilter(filter, versionFields(named));
      const query = { principal: owner, narrowing };
      const { rows, ...page } = await listPage(keys, { pageSize, pageToken }, query, accepts);
      return {
        cryptoKeyVersions: rows.map(({ record, isIntact }) =>
          isIntact ? packVersion(record, named) : packDamaged(nameOfVersion(record)),
        ),
        ...page,
      };
    },
    getCryptoKeyVersion: ({ name }, context) => describe(name, readCaller(context).principal),
    async createCryptoKeyVersion({ parent, cryptoKeyVersion }, context) {
      const { principal } = readCaller(context);
      const name = readKeyName("parent", parent);
      const isDisabled = readNewState(cryptoKeyVersion) === VersionState.DISABLED;
      const named = await requireName(deps, principal, name);
      if (named.isImportOnly) throw refuseField("parent", "is importOnly; call ImportCryptoKeyVersion");
      return packVersion(await addVersion(deps, principal, named.name, { isDisabled }), named);
    },
    async updateCryptoKeyVersion({ cryptoKeyVersion, updateMask }, context) {
      const { name = "", state = VersionState.CRYPTO_KEY_VERSION_STATE_UNSPECIFIED } = cryptoKeyVersion ?? {};
      requireStateOnly(updateMask?.paths ?? []);
      const caller = readCaller(context);
      const { record } = await findVersion(deps, name, caller.principal, "cryptoKeyVersion.name");
      if (state === VersionState.ENABLED) {
        if (record.state !== "ACTIVE" && record.state !== "ROTATED")
          await onVersion(record, (handle) => enableKey(deps, { handle, ...caller }));
      } else if (state === VersionState.DISABLED) {
        if (record.state !== "DISABLED")
          await onVersion(record, (handle) => disableKey(deps, { handle, ...caller }));
      } else throw refuseField("cryptoKeyVersion.state", "must be ENABLED or DISABLED");
      return describe(name, caller.principal);
    },
    async destroyCryptoKeyVersion({ name }, context) {
      const caller = readCaller(context);
      const { record, named } = await findVersion(deps, name, caller.principal);
      const afterSeconds = named.destroyAfterSeconds ?? defaultDestroySeconds;
      await onVersion(record, (handle) => destroyKey(deps, { handle, afterSeconds, ...caller }));
      return describe(name, caller.principal);
    },
    async restoreCryptoKeyVersion({ name }, context) {
      const caller = readCaller(context);
      const { record } = await findVersion(deps, name, caller.principal);
      await onVersion(record, (handle) => restoreKey(deps, { handle, ...caller }));
      return describe(name, caller.principal);
    },
  };
}

/** A version with its key. */
export interface FoundVersion {
  readonly record: KeyRecord;
  readonly named: KeyName;
}

/**
 * Finds a version of a key that the caller owns. Google's names do not contain the owner, so another user
 * could replace a granted key with their own; grantees use kms.
 *
 * @throws FIELD_INVALID, KEY_NOT_FOUND, KEY_DAMAGED
 */
export async function findVersion(
  deps: GoogleDeps,
  name: string,
  principal: Principal,
  field = "name",
): Promise<FoundVersion> {
  const { version, ...key } = parseCryptoKeyVersionName(field, name);
  const named = await requireName(deps, principal, formatCryptoKeyName(key));
  return { record: await requireVersion(deps, named, version, name), named };
}

/** Uses or changes a version in the key service. Error messages use Google's names. */
export async function onVersion<T>(record: KeyRecord, run: (handle: string) => Promise<T>): Promise<T> {
  try {
    return await run(record.keyId);
  } catch (error) {
    throw error instanceof ConnectError ? renameSubject(error, record.keyId, nameOfVersion(record)) : error;
  }
}

/**
 * Reads a new version's state.
 *
 * @throws FIELD_INVALID for options that would have no effect
 */
function readNewState(given: CryptoKeyVersion | undefined): VersionState {
  if (given?.externalProtectionLevelOptions !== undefined)
    throw refuseField("cryptoKeyVersion.externalProtectionLevelOptions", "is not supported; leave it out");
  const { state = VersionState.CRYPTO_KEY_VERSION_STATE_UNSPECIFIED } = given ?? {};
  const allowed: readonly VersionState[] = [
    VersionState.CRYPTO_KEY_VERSION_STATE_UNSPECIFIED,
    VersionState.ENABLED,
    VersionState.DISABLED,
  ];
  if (allowed.includes(state)) return state;
  throw refuseField("cryptoKeyVersion.state", "must be ENABLED or DISABLED; the default is ENABLED");
}

function requireStateOnly(paths: readonly string[]): void {
  if (paths.length === 0) throw refuseField("updateMask", 'is empty; send "state"');
  const other = paths.find((path) => path !== "state");
  if (other !== undefined) throw refuseField("updateMask", `"${other}" cannot be changed; only "state" can`);
}
