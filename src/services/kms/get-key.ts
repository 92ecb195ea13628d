import type { CryptoProvider } from "../../crypto/provider.ts";
import { maxPageSize } from "../../records/pages.ts";
import { beginAttempt, type KeyInput } from "./attempt.ts";
import { type FindDeps, findKey, nameOtherOwners } from "./find-key.ts";
import { isWholeName } from "./handle.ts";
import { keyDamaged } from "./key-refusals.ts";
import { packListed, packWithJwk, type RecordMessage } from "./record-message.ts";

/** A key, with its versions (oldest first) if the handle is a whole name. */
export interface ShownKey {
  readonly result: RecordMessage;
  readonly versions: RecordMessage[];
}

/**
 * Reads a key with its public key.
 *
 * @throws KEY_NOT_FOUND, GRANT_MISSING, KEY_DAMAGED
 */
export async function getKey(
  deps: FindDeps & { readonly provider: CryptoProvider },
  input: KeyInput,
): Promise<ShownKey> {
  const { provider, keys } = deps;
  const { key, grant } = await findKey(deps, beginAttempt("GET_KEY", input));
  const { record } = key;
  if (!key.isIntact) throw keyDamaged(record.keyId);
  const nameOf = await keys.names.findOf([record]);
  const owner = await nameOtherOwners(deps, input.principal)(record.owner);
  const result = packWithJwk(provider, key, nameOf(record), owner);
  // A grant for one version does not reveal the others.
  if (!isWholeName(input.handle) || grant?.isOfName === false) return { result, versions: [] };
  const versions = await keys.listVersions(record.owner, record.name ?? "", maxPageSize);
  const name = nameOf(record);
  // A name's labels may take 70 KB, and the result already has them.
  const bare = name && { ...name, labels: {} };
  return { result, versions: versions.map((version) => packListed(version, bare, owner)) };
}
