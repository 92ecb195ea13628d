/** A key's grants: what other users may do with it. */
import type { Grant } from "#gen/kms/grant_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { Caller } from "../../caller.ts";
import { Failure } from "../../failure.ts";
import { parseMinute } from "../../time.ts";
import { loadList } from "../lists.ts";

const { createGrant, listGrants, revokeGrant } = KmsService.method;

/**
 * Loads all grants for a key, or for a name and its versions.
 *
 * @param handle "key-…" or "name/…"
 */
export async function loadGrants({ call }: Caller, handle: string): Promise<readonly Grant[]> {
  const load = (page: object) => call(listGrants, { keyId: handle, ...page });
  return (await loadList(load, ({ grants }) => grants, Number.POSITIVE_INFINITY)).items;
}

/** A new grant's fields, as the reader types them. */
export interface NewGrant {
  /** "key-…" for one key, "name/…" for all versions of a name. */
  readonly handle: string;
  readonly grantee: string;
  readonly operations: readonly string[];
  /** "2026-11-23T13:58" in UTC; empty for no end. */
  readonly end: string;
}

export async function createNewGrant({ call }: Caller, grant: NewGrant): Promise<void> {
  const { handle: keyId, grantee, operations, end } = grant;
  const expiresAt = parseMinute(end);
  // Without its end, the grant would never expire.
  if (end !== "" && expiresAt === undefined)
    throw new Failure("TIME_INVALID", "BROWSER", "The end is not a time until the year 9999.");
  await call(createGrant, { keyId, grantee, operations: [...operations], ...(expiresAt && { expiresAt }) });
}

export async function revoke({ call }: Caller, grantId: string): Promise<void> {
  await call(revokeGrant, { grantId });
}

/** "may SIGN, VERIFY with all versions". A grant for one version has the ID of its key. */
export function describeGrant(
  { keyId, operations, damaged }: Grant,
  versions: readonly { readonly keyId: string; readonly version?: number | undefined }[],
): string {
  if (damaged) return "may do nothing: the stored grant is DAMAGED";
  const version = versions.find((candidate) => candidate.keyId === keyId)?.version;
  const scope = version === undefined ? "this key" : `version ${version}`;
  return `may ${operations.join(", ")} with ${keyId === "" ? "all versions" : scope}`;
}
