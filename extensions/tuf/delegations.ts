/** Roles to which targets delegates the targets of a device type. */
import {
  type RemoveDelegationRequest,
  RemoveDelegationResponseSchema,
  type SetDelegationRequest,
  SetDelegationResponseSchema,
} from "#gen/tuf/repository_service_pb.ts";
import { refuse, refuseField } from "../../src/errors.ts";
import type { CallerInput } from "../../src/identity/principal.ts";
import { messageCodec } from "../../src/records/idempotency.ts";
import { intact } from "../../src/records/table-declaration.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import { asOwner, type TufDeps } from "./deps.ts";
import { packDelegation } from "./read-repository.ts";
import { reasons } from "./reasons.ts";
import { findRoleKey, withNewKeys } from "./role-keys.ts";
import { maxRoles } from "./store.ts";
import type { Delegation } from "./tables.ts";

/** Maximum delegated roles: python-tuf visits 32 roles, of which targets is one. */
const maxDelegations = 31;

/**
 * Adds a delegation, or gives it a different key.
 *
 * @throws REPOSITORY_NOT_FOUND, FIELD_INVALID if there are too many, IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED,
 *   and the errors of findRoleKey
 */
export async function setDelegation(
  deps: TufDeps,
  { repository: name, role, key: handle }: SetDelegationRequest,
  caller: CallerInput,
) {
  const { store, tuf } = deps;
  const repository = await tuf.findRepository(name, caller);
  const who = await asOwner(deps, repository, caller);
  return store.runIdempotent(
    caller.idempotentCall,
    messageCodec(SetDelegationResponseSchema),
    async (write) => {
      const given = handle === "" ? undefined : await findRoleKey(deps, who, handle);
      return withNewKeys(deps, who, repository, given === undefined ? [role] : [], (storeKeys) =>
        write(async (transaction) => {
          const current = await tuf.findRepository(name, transaction);
          const before = await tuf.delegations.findIntact({ repository: name, role }, transaction);
          if (before === undefined || before.isRemoved) await requireRoomForRole(transaction, name, before);
          const key = given ?? (await storeKeys(transaction))[role];
          const change = { keyId: key?.keyId ?? "", isRemoved: false };
          const added: Delegation = { repository: name, role, publishedKeyId: undefined, ...change };
          if (before === undefined) await tuf.delegations.insert(transaction, added);
          else await tuf.delegations.update(transaction, intact(before), change);
          await tuf.change(transaction, current, {});
          const newest = (await tuf.readNewest(name, transaction.db)).get(role);
          const { publishedKeyId } = before ?? added;
          const findKey = (keyId: string) => deps.keys.findForChange(transaction, keyId);
          return { role: await packDelegation(findKey, { ...added, publishedKeyId }, newest) };
        }),
      );
    },
  );
}

/** @throws FIELD_INVALID */
async function requireRoomForRole(
  { db }: WriteTransaction,
  repository: string,
  before: Delegation | undefined,
): Promise<void> {
  const rows = await db
    .selectFrom("tuf_delegations")
    .select("is_removed")
    .where("repository", "=", repository)
    .execute();
  const active = rows.filter(({ is_removed }) => is_removed === 0).length;
  if (active >= maxDelegations)
    throw refuseField(
      "role",
      `would be the ${active + 1}th delegated role; clients visit up to ${maxDelegations}`,
    );
  if (before === undefined && rows.length >= maxRoles)
    throw refuseField(
      "role",
      `would be a new role, but the repository has had ${maxRoles}; reuse one of their names`,
    );
}

/**
 * Removes a delegation with the next Publish.
 *
 * @throws REPOSITORY_NOT_FOUND, DELEGATION_NOT_FOUND, IDEMPOTENCY_KEY_REUSED
 */
export async function removeDelegation(
  { store, tuf }: TufDeps,
  { repository: name, role }: RemoveDelegationRequest,
  { principal, idempotentCall }: CallerInput,
) {
  await tuf.findRepository(name, { principal });
  return store.runIdempotent(idempotentCall, messageCodec(RemoveDelegationResponseSchema), (write) =>
    write(async (transaction) => {
      const current = await tuf.findRepository(name, transaction);
      const before = await tuf.delegations.findIntact({ repository: name, role }, transaction);
      if (before === undefined || before.isRemoved)
        throw refuse(reasons.delegationNotFound, `repository ${name} does not delegate to a role ${role}`, {
          repository: name,
          role,
        });
      await tuf.delegations.update(transaction, intact(before), { isRemoved: true });
      await tuf.change(transaction, current, {});
      return {};
    }),
  );
}

/**
 * Records that the newest targets metadata name the current delegations, within the transaction that
 * publishes them. Removed ones stay: snapshots keep listing their metadata (TUF specification, section 5.5),
 * and a role that returns continues their versions.
 */
export async function publishDelegations(
  { tuf }: TufDeps,
  transaction: WriteTransaction,
  repository: string,
): Promise<void> {
  const rows = await transaction.db
    .selectFrom("tuf_delegations")
    .selectAll()
    .where("repository", "=", repository)
    .execute();
  for (const row of rows) {
    const found = tuf.delegations.readRow(row);
    const { keyId, isRemoved, publishedKeyId } = found.record;
    const key = isRemoved ? undefined : keyId;
    if (key !== publishedKeyId) await tuf.delegations.update(transaction, found, { publishedKeyId: key });
  }
}
