import { sql } from "kysely";
import type { ListGrantsRequest } from "#gen/kms/kms_service_pb.ts";
import { type Principal, systemPrincipal } from "../../records/ownership.ts";
import type { Narrowing } from "../../records/record-table.ts";
import { readList } from "../fields.ts";
import { type FindDeps, findNamedId, findOwner } from "./find-key.ts";
import { packGrant } from "./grants.ts";
import { parseHandle } from "./handle.ts";

/**
 * Lists grants in creation order.
 *
 * @throws FIELD_INVALID
 */
export async function listGrants(deps: FindDeps, query: ListGrantsRequest, principal: Principal) {
  const { grants } = deps.keys;
  const { received, keyId: handle } = query;
  const conditions = [
    grants.current(),
    ...(received ? [sql<boolean>`grantee = ${principal.userId}`] : []),
    ...(handle === "" ? [] : [await isOf(deps, handle, principal)]),
  ];
  const narrowing: Narrowing = {
    name: JSON.stringify([received, principal.userId, handle]),
    where: sql<boolean>`${sql.join(conditions, sql` and `)}`,
  };
  const seer = received ? systemPrincipal : principal;
  const { rows, ...page } = await readList(grants, query, { principal: seer, narrowing });
  return {
    ...page,
    grants: rows.map(({ record, isIntact }) =>
      isIntact ? packGrant(record) : { grantId: record.grantId, damaged: true },
    ),
  };
}

/** Selects the grants for a key, or for a name or one of its versions. */
async function isOf(deps: FindDeps, handle: string, principal: Principal) {
  const parsed = parseHandle(handle);
  if (parsed.kind === "id") return sql<boolean>`key_id = ${parsed.keyId}`;
  // An unknown name has no grants, so it is indistinguishable from a name that the caller may not see. No key
  // has a handle as its ID.
  if (parsed.version !== undefined)
    return sql<boolean>`key_id = ${(await findNamedId(deps, parsed, principal)) ?? handle}`;
  const { name } = parsed;
  const owner = await findOwner(deps, parsed, principal);
  return sql<boolean>`(owner = ${owner} and (key_name = ${name} or key_id in (
    select kms_keys.key_id from kms_keys where kms_keys.owner = ${owner} and kms_keys.key_name = ${name}
  )))`;
}
