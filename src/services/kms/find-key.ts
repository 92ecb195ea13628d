/** Finds the key that a caller's handle stands for, and checks what the caller may do with it. */
import type { ConnectError } from "@connectrpc/connect";
import { refuse } from "../../errors.ts";
import type { UserStore } from "../../identity/users.ts";
import { isSeenBy, type Principal, systemPrincipal } from "../../records/ownership.ts";
import { type Operation, type Subject, subjectOf, unknownSubject } from "./event.ts";
import type { UseOfGrant } from "./grant-store.ts";
import { parseHandle, writeName } from "./handle.ts";
import type { KeyCache } from "./key-cache.ts";
import type { KeyName, KeyRecord } from "./record.ts";
import type { KmsStore, StoredKey } from "./store.ts";

/** The dependencies of the search for keys. */
export interface FindDeps {
  readonly keys: KmsStore;
  readonly cache: KeyCache;
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
}

/** A handle, and who uses it for what. */
export interface Wanted {
  /** As the caller sent it. */
  readonly handle: string;
  readonly principal: Principal;
  readonly operation: Operation;
  /** Receives what audit entries are about, as soon as it is known. */
  readonly about: { subject: Subject };
}

/** A key that the caller may use. */
export interface FoundKey<Key extends StoredKey = StoredKey> {
  readonly key: Key;
  /** The grant that the use relies on; undefined for a caller who needs none. */
  readonly grant: UseOfGrant | undefined;
}

/** Starts with the handle as the subject, until the key is found. */
export function aboutHandle(handle: string): Wanted["about"] {
  return { subject: unknownSubject(handle) };
}

/**
 * Finds the ID that a handle stands for.
 *
 * @throws KEY_NOT_FOUND
 */
export async function resolveHandle(
  deps: FindDeps,
  { handle, principal }: Pick<Wanted, "handle" | "principal">,
): Promise<string> {
  const parsed = parseHandle(handle);
  if (parsed.kind === "id") return parsed.keyId;
  const cached = cacheKey(handle, principal);
  const known = deps.cache.handles.get(cached);
  if (known !== undefined) return known;
  const found = await findName(deps, { handle, principal });
  if (found === undefined) throw await nameNotFound(deps, { handle, principal });
  const keyId = await findVersionId(deps, found, parsed.version);
  if (keyId === undefined) throw keyNotFound(handle);
  // The name of another user stands for another owner once that user is removed and added again.
  if (found.owner === principal.userId) deps.cache.handles.set(cached, keyId);
  return keyId;
}

/** Forgets what a handle stood for. */
export function forgetHandle(
  { cache }: FindDeps,
  { handle, principal }: Pick<Wanted, "handle" | "principal">,
): void {
  cache.handles.delete(cacheKey(handle, principal));
}

/**
 * Finds the name that a handle is about. Without a user it is the caller's own: if a grant gave it a meaning, anybody
 * could put their key in the place of another by granting it.
 *
 * @returns undefined if there is no such name
 */
export async function findName(
  deps: FindDeps,
  { handle, principal }: Pick<Wanted, "handle" | "principal">,
): Promise<KeyName | undefined> {
  const parsed = parseHandle(handle);
  if (parsed.kind === "id") return undefined;
  const { user, name } = parsed;
  const { keys, users } = deps;
  const owner = user === undefined ? principal.userId : await findUserId(users, user);
  return owner === undefined ? undefined : keys.names.find(owner, name);
}

/** The refusal for a name that does not exist. It shows a grantee who left out the user what to write instead. */
async function nameNotFound(
  { keys, users }: FindDeps,
  { handle, principal }: Pick<Wanted, "handle" | "principal">,
): Promise<ConnectError> {
  const parsed = parseHandle(handle);
  if (parsed.kind === "id" || parsed.user !== undefined) return keyNotFound(handle);
  const owners = await keys.grants.listOwners(principal.userId, parsed.name);
  const names = await Promise.all(owners.map((owner) => findOwnerName(users, owner)));
  const granted = names.flatMap((name) => (name === undefined ? [] : [`user/${name}/${handle}`]));
  if (granted.length === 0) return keyNotFound(handle);
  const advice = `without a user it means a key of yours. A grant lets you use ${granted.join(" or ")}`;
  return refuse("KEY_NOT_FOUND", `key ${handle} does not exist; ${advice}`, { keyId: handle });
}

/** The refusal for an unknown ID. Aliases have no index, because many keys may have the same one. */
async function idNotFound(
  keys: KmsStore,
  { handle, principal }: Pick<Wanted, "handle" | "principal">,
): Promise<ConnectError> {
  if (parseHandle(handle).kind === "name" || handle.startsWith("key-")) return keyNotFound(handle);
  const isName = (await keys.names.find(principal.userId, handle)) !== undefined;
  const advice = isName ? `did you mean ${writeName(handle)}?` : "an alias is no ID: use key-… or name/…";
  return refuse("KEY_NOT_FOUND", `key ${handle} does not exist; ${advice}`, { keyId: handle });
}

/** Finds the ID of a user or a client; without users, any name is its own ID. */
export async function findUserId(users: UserStore | undefined, user: string): Promise<string | undefined> {
  if (users === undefined || user === systemPrincipal.userId) return user;
  return users.findOwner(user);
}

/** Finds the name of a user or a client by their ID; undefined if they are no longer there. */
async function findOwnerName(users: UserStore | undefined, owner: string): Promise<string | undefined> {
  if (users === undefined || owner === systemPrincipal.userId) return owner;
  return users.findOwnerName(owner);
}

async function findVersionId(
  { keys }: FindDeps,
  { owner, name, primaryKeyId }: KeyName,
  version: number | undefined,
): Promise<string | undefined> {
  if (version === undefined) return primaryKeyId;
  return (await keys.findVersion(owner, name, version))?.record.keyId;
}

/**
 * Checks that a caller may perform an operation with a key.
 *
 * @returns the grant that the caller relies on
 * @throws KEY_NOT_FOUND for a caller who may do nothing with the key, GRANT_MISSING for one who may do something else
 */
export async function checkAllowed(
  { keys }: Pick<FindDeps, "keys">,
  { handle, principal, operation, about }: Wanted,
  record: KeyRecord | undefined,
): Promise<UseOfGrant | undefined> {
  if (record === undefined) throw await idNotFound(keys, { handle, principal });
  // The owner of a key sees who tried to use it.
  about.subject = subjectOf(record);
  if (isSeenBy(principal, record)) return undefined;
  const [grant] = await keys.grants.listFor(principal.userId, record, operation);
  if (grant !== undefined) return { grantId: grant.grantId, isOfName: grant.keyId === "", operation };
  const grants = await keys.grants.listFor(principal.userId, record);
  if (grants.length === 0) throw keyNotFound(handle);
  const granted = [...new Set(grants.flatMap(({ operations }) => operations))].join(", ");
  throw refuse(
    "GRANT_MISSING",
    `you may perform ${granted} with the key ${handle}, but not ${operation}; ask its owner`,
    { keyId: handle, operation },
  );
}

/** Finds a key as it is in the store. @throws as resolveHandle and checkAllowed do */
export async function findKey(deps: FindDeps, wanted: Wanted): Promise<FoundKey> {
  const key = await deps.keys.find(await resolveAnew(deps, wanted));
  const grant = await checkAllowed(deps, wanted, key?.record);
  return { key: key as StoredKey, grant };
}

/** Resolves a handle without the cache. */
export function resolveAnew(deps: FindDeps, wanted: Pick<Wanted, "handle" | "principal">): Promise<string> {
  forgetHandle(deps, wanted);
  return resolveHandle(deps, wanted);
}

function cacheKey(handle: string, { userId }: Principal): string {
  return `${userId} ${handle}`;
}

/** Finds the ID that a handle stands for; undefined if there is no such key. */
export async function findId(
  deps: FindDeps,
  wanted: Pick<Wanted, "handle" | "principal">,
): Promise<string | undefined> {
  const parsed = parseHandle(wanted.handle);
  if (parsed.kind === "id") return parsed.keyId;
  const found = await findName(deps, wanted);
  return found && findVersionId(deps, found, parsed.version);
}

/** The refusal for a key that does not exist. */
export function keyNotFound(keyId: string): ConnectError {
  return refuse("KEY_NOT_FOUND", `key ${keyId} does not exist`, { keyId });
}
