import { ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { sql } from "kysely";
import {
  type CryptoKeyVersion,
  CryptoKeyVersion_CryptoKeyVersionState as VersionState,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import type { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { refuseField, renameSubject } from "../../src/errors.ts";
import type { Principal } from "../../src/records/ownership.ts";
import type { ChangeInput } from "../../src/services/kms/change.ts";
import { keyDamaged, keyNotFound } from "../../src/services/kms/key-refusals.ts";
import { destroyKey, disableKey, enableKey, restoreKey } from "../../src/services/kms/life-cycle.ts";
import type { KeyName, KeyRecord } from "../../src/services/kms/tables.ts";
import { type GoogleDeps, readCaller, readOwner, requireMask } from "./calls.ts";
import { versionFields } from "./filter-fields.ts";
import { prepareList } from "./lists.ts";
import { addVersion, requireName } from "./named-keys.ts";
import { defaultDestroySeconds, nameOfVersion, packVersion, versionStates } from "./pack.ts";
import { checkName, parseVersionName } from "./resource-names.ts";

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
  /** Changes a version in the key service, and returns the changed version. */
  const change = async (
    name: string,
    context: HandlerContext,
    run: (input: ChangeInput, found: FoundVersion) => Promise<unknown>,
    field = "name",
  ) => {
    const caller = readCaller(context);
    const found = await findVersion(deps, name, caller.principal, field);
    await onVersion(found.record, (handle) => run({ handle, ...caller }, found));
    return describe(name, caller.principal);
  };
  return {
    async listCryptoKeyVersions({ parent, ...request }, context) {
      const owner = readOwner(context);
      const named = await requireName(deps, owner, checkName("key", "parent", parent));
      const read = prepareList(keys, request, owner, {
        rows: { name: JSON.stringify([named.name]), where: sql<boolean>`key_name = ${named.name}` },
        fields: versionFields(named),
        pack: (record) => packVersion(record, named),
        nameOf: nameOfVersion,
      });
      const { records: cryptoKeyVersions, ...page } = await read();
      return { ...page, cryptoKeyVersions };
    },
    getCryptoKeyVersion: ({ name }, context) => describe(name, readCaller(context).principal),
    async createCryptoKeyVersion({ parent, cryptoKeyVersion }, context) {
      const { principal } = readCaller(context);
      const name = checkName("key", "parent", parent);
      const isDisabled = readNewState(cryptoKeyVersion) === VersionState.DISABLED;
      const named = await requireName(deps, principal, name);
      if (named.isImportOnly) throw refuseField("parent", "is importOnly; call ImportCryptoKeyVersion");
      return packVersion(await addVersion(deps, principal, named.name, isDisabled), named);
    },
    async updateCryptoKeyVersion({ cryptoKeyVersion, updateMask }, context) {
      const { name = "", state } = cryptoKeyVersion ?? {};
      requireMask(updateMask, "state");
      const setState = async (input: ChangeInput, { record }: FoundVersion): Promise<unknown> => {
        if (state !== VersionState.ENABLED && state !== VersionState.DISABLED)
          throw refuseField("cryptoKeyVersion.state", "must be ENABLED or DISABLED");
        if (state === versionStates[record.state]) return undefined;
        return state === VersionState.ENABLED ? enableKey(deps, input) : disableKey(deps, input);
      };
      return change(name, context, setState, "cryptoKeyVersion.name");
    },
    destroyCryptoKeyVersion: ({ name }, context) =>
      change(name, context, (input, { named }) => {
        const afterSeconds = named.destroyAfterSeconds ?? defaultDestroySeconds;
        return destroyKey(deps, { ...input, afterSeconds });
      }),
    restoreCryptoKeyVersion: ({ name }, context) => change(name, context, (input) => restoreKey(deps, input)),
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
  const { key, version } = parseVersionName(field, name);
  const named = await requireName(deps, principal, key);
  const found = await deps.keys.findVersion(named.owner, key, version);
  if (found === undefined) throw keyNotFound(name);
  if (!found.isIntact) throw keyDamaged(name);
  return { record: found.record, named };
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
