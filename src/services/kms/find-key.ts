/** Resolves a caller's handle to a key, and checks what the caller may do with it. */
import type { ConnectError } from "@connectrpc/connect";
import { RecordDamagedError } from "../../database/store-error.ts";
import { refuse } from "../../errors.ts";
import { findOwnerName, type UserStore } from "../../identity/users.ts";
import { isSeenBy, type Principal, systemPrincipal } from "../../records/ownership.ts";
import type { FindOptions } from "../../records/record-table.ts";
import type { Attempt } from "./attempt.ts";
import { type Operation, subjectOf } from "./event.ts";
import type { UseOfGrant } from "./grant-store.ts";
import { type NameHandle, parseHandle, writeName } from "./handle.ts";
import type { KeyCache } from "./key-cache.ts";
import { keyNotFound } from "./key-refusals.ts";
import type { KmsStore, StoredKey } from "./store.ts";

export interface FindDeps {
  readonly keys: KmsStore;
  readonly cache: KeyCache;
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
}

/** A handle and its sender: a name without a user belongs to the sender. */
type SentHandle = Pick<Attempt, "handle" | "principal">;

/** A key that the caller may use. */
export interface AllowedKey<Key extends StoredKey = StoredKey> {
  readonly key: Key;
  /** The grant that the use relies on; undefined for a caller who needs none. */
  readonly grant: UseOfGrant | undefined;
}

/** Resolves a handle without the store: it is an ID, or the cache knows it. */
export function findKnownId({ cache }: FindDeps, { handle, principal }: SentHandle): string | undefined {
  const parsed = parseHandle(handle);
  return parsed.kind === "id" ? parsed.keyId : cache.handles.get(cacheKey(handle, principal));
}

/**
 * Resolves a handle to a key ID with the store.
 *
 * @returns for an unknown name of another user, the handle itself, which is never a key ID. The lookup then
 *   takes as long as for a name that the caller may not see.
 * @throws KEY_NOT_FOUND for an unknown name of the caller's own
 */
export async function resolveHandle(deps: FindDeps, { handle, principal }: SentHandle): Promise<string> {
  const parsed = parseHandle(handle);
  if (parsed.kind === "id") return parsed.keyId;
  forgetHandle(deps, { handle, principal });
  const owner = await findOwner(deps, parsed, principal);
  const keyId = await findVersionId(deps, owner, parsed);
  if (keyId === undefined) {
    if (parsed.user !== undefined) return handle;
    throw await ownNameNotFound(deps, parsed.name, { handle, principal });
  }
  // Other users' names are not cached: a user can be removed and added again as a different owner.
  if (owner === principal.userId) deps.cache.handles.set(cacheKey(handle, principal), keyId);
  return keyId;
}

/** Evicts a handle from the cache. */
export function forgetHandle({ cache }: FindDeps, { handle, principal }: SentHandle): void {
  cache.handles.delete(cacheKey(handle, principal));
}

function cacheKey(handle: string, { userId }: Principal): string {
  return `${userId} ${handle}`;
}

/**
 * Finds the owner of the name in a handle: the caller, if the handle names no user. If a grant could give
 * such a name a meaning, anyone could substitute their key for another user's by granting it.
 *
 * @returns for an unknown user, an ID that no user has, so that the same queries run as for a user without
 *   this name
 */
export async function findOwner(
  { users }: Pick<FindDeps, "users">,
  { user }: NameHandle,
  principal: Principal,
): Promise<string> {
  if (user === undefined) return principal.userId;
  if (users === undefined || user === systemPrincipal.userId) return user;
  return (await users.findOwner(user)) ?? "";
}

/** Returns the ID of the key that a name stands for; undefined if no such key exists. */
export async function findNamedId(
  deps: FindDeps,
  parsed: NameHandle,
  principal: Principal,
): Promise<string | undefined> {
  return findVersionId(deps, await findOwner(deps, parsed, principal), parsed);
}

/**
 * Returns the ID of a name's version; the primary version if the handle has none.
 *
 * @throws RecordDamagedError
 */
async function findVersionId(
  { keys }: Pick<FindDeps, "keys">,
  owner: string,
  { name, version }: NameHandle,
): Promise<string | undefined> {
  if (version === undefined) return (await keys.names.find(owner, name))?.primaryKeyId;
  return (await keys.findVersion(owner, name, version))?.record.keyId;
}

/**
 * Returns the refusal for an unknown name of the caller. A grantee who omitted the user gets the full handle.
 */
async function ownNameNotFound(
  { keys, users }: FindDeps,
  name: string,
  { handle, principal }: SentHandle,
): Promise<ConnectError> {
  const owners = await keys.grants.listOwners(principal.userId, name);
  const names = await Promise.all(owners.map((owner) => findOwnerName(users, owner)));
  const granted = names.flatMap((user) => (user === undefined ? [] : [`user/${user}/${handle}`]));
  if (granted.length === 0) return keyNotFound(handle);
  const advice = `without a user, the name means your own key. A grant lets you use ${granted.join(" or ")}`;
  return refuse("KEY_NOT_FOUND", `key ${handle} does not exist; ${advice}`, { keyId: handle });
}

/** Creates a function that names a key's owner, unless it is the caller. It reads each user once. */
export function nameOtherOwners(
  { users }: Pick<FindDeps, "users">,
  { userId }: Principal,
): (owner: string) => Promise<string | undefined> {
  const known = new Map<string, Promise<string | undefined>>([[userId, Promise.resolve(undefined)]]);
  return (owner) => {
    const name = known.get(owner) ?? nameOwner(users, owner);
    known.set(owner, name);
    return name;
  };
}

/** Returns the name of an owner, or their ID if they were removed. */
export async function nameOwner(users: UserStore | undefined, owner: string): Promise<string> {
  try {
    return (await findOwnerName(users, owner)) ?? owner;
  } catch (error) {
    // A damaged user must not hide their keys.
    if (error instanceof RecordDamagedError) return owner;
    throw error;
  }
}

/** Returns whether an account exists. Its removal ends the grants that it received. */
export async function hasAccount(
  { users }: Pick<FindDeps, "users">,
  userId: string,
  options: FindOptions = {},
): Promise<boolean> {
  return (await findOwnerName(users, userId, options)) !== undefined;
}

/**
 * Returns the refusal for an unknown ID. Aliases cannot be looked up, because many keys may have the same
 * alias.
 */
async function idNotFound(keys: KmsStore, { handle, principal }: SentHandle): Promise<ConnectError> {
  if (parseHandle(handle).kind === "name" || handle.startsWith("key-")) return keyNotFound(handle);
  const isName = (await keys.names.find(principal.userId, handle)) !== undefined;
  const advice = isName ? `did you mean ${writeName(handle)}?` : "aliases are not IDs: use key-… or name/…";
  return refuse("KEY_NOT_FOUND", `key ${handle} does not exist; ${advice}`, { keyId: handle });
}

/**
 * Returns whether a caller may perform an operation with a key, and by which grant.
 *
 * @returns the refusal KEY_NOT_FOUND for a caller who may do nothing with the key, or GRANT_MISSING for one
 *   who may only perform other operations
 */
export async function findPermission<Key extends StoredKey>(
  { keys, users }: Pick<FindDeps, "keys" | "users">,
  { handle, principal, ...attempt }: Pick<Attempt, "handle" | "principal" | "operation" | "needs">,
  key: Key | undefined,
): Promise<AllowedKey<Key> | { readonly refusal: ConnectError }> {
  if (key !== undefined && isSeenBy(principal, key.record)) return { key, grant: undefined };
  const operation = attempt.needs ?? attempt.operation;
  // A caller who acts for themselves has an account: its removal has revoked their tokens.
  if (principal.actsFor !== undefined && !(await hasAccount({ users }, principal.userId)))
    return { refusal: grantEnded(handle, operation, principal.actsFor) };
  // Query grants even if the key does not exist, so that the response takes equally long.
  const grants = await keys.grants.listFor(principal.userId, key?.record ?? noKey, operation);
  if (key === undefined) return { refusal: await idNotFound(keys, { handle, principal }) };
  const [grant] = grants;
  if (grant === undefined) return { refusal: keyNotFound(handle) };
  if (grant.operations.includes(operation))
    return { key, grant: { grantId: grant.grantId, isOfName: grant.keyId === "", operation } };
  const granted = [...new Set(grants.flatMap(({ operations }) => operations))].join(", ");
  const refusal = refuse(
    "GRANT_MISSING",
    `you may perform ${granted} with key ${handle}, but not ${operation}; ask its owner`,
    { keyId: handle, operation },
  );
  return { refusal };
}

function grantEnded(handle: string, operation: Operation, account: string): ConnectError {
  return refuse(
    "GRANT_MISSING",
    `the account ${account} was removed, and with it the grants that it had; key ${handle} belongs to someone else`,
    { keyId: handle, operation },
  );
}

/** Matches no key and no grant. */
const noKey = { keyId: "none", owner: "", name: undefined };

/**
 * Returns a key that the caller may use.
 *
 * @throws KEY_NOT_FOUND, GRANT_MISSING
 */
export async function requirePermission<Key extends StoredKey>(
  deps: Pick<FindDeps, "keys" | "users">,
  attempt: Attempt,
  key: Key | undefined,
): Promise<AllowedKey<Key>> {
  const permission = await findPermission(deps, attempt, key);
  if ("refusal" in permission) throw permission.refusal;
  return permission;
}

/**
 * Finds a key in the store, which becomes the subject of the attempt.
 *
 * @throws KEY_NOT_FOUND, GRANT_MISSING
 */
export async function findKey(deps: FindDeps, attempt: Attempt): Promise<AllowedKey> {
  const key = await deps.keys.find(await resolveHandle(deps, attempt));
  if (key !== undefined) attempt.subject = subjectOf(key.record);
  return requirePermission(deps, attempt, key);
}
