/** Grants: a key's owner lets another user perform some operations with it. */
import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { GrantSchema } from "#gen/kms/grant_pb.ts";
import type { CreateGrantRequest } from "#gen/kms/kms_service_pb.ts";
import { type KeyUsage, listGrantable } from "../../crypto/key-uses.ts";
import { refuse, refuseField } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import { isSeenBy } from "../../records/ownership.ts";
import type { Stored } from "../../records/table-declaration.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { readTime } from "../fields.ts";
import { type Attempt, beginAttempt, recordingRefusal } from "./attempt.ts";
import { type ChangeDeps, type Changed, takeAnswer, wrapCodec } from "./change.ts";
import { type Actor, recordDone, type Subject } from "./event.ts";
import { findKey } from "./find-key.ts";
import { isWholeName, parseHandle, writeName } from "./handle.ts";
import { keyDamaged } from "./key-refusals.ts";
import { describeGrantEnd, type GrantEnd, type GrantRecord, grantQuota, type KeyRecord } from "./tables.ts";

export type GrantMessage = MessageInitShape<typeof GrantSchema>;

const grantCodec = messageCodec(GrantSchema);

/**
 * Creates a grant for one key, or for all versions of a name.
 *
 * @throws KEY_NOT_FOUND; GRANT_MISSING for a caller who does not own the key; FIELD_INVALID,
 *   KEY_DAMAGED, IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export async function createGrant(
  deps: ChangeDeps,
  { keyId, name, grantee, operations, expiresAt }: CreateGrantRequest,
  caller: CallerInput,
): Promise<GrantMessage> {
  const { store, keys, users } = deps;
  const { principal, idempotentCall } = caller;
  const attempt = beginAttempt("CREATE_GRANT", { ...caller, handle: keyId || writeName(name) });
  return recordingRefusal(deps, attempt, () =>
    store.runIdempotent(idempotentCall, grantCodec, async (write) => {
      const { record, isIntact } = (await findKey(deps, attempt)).key;
      // A grant takes its owner from the key, and stays valid after the key is repaired.
      if (!isIntact) throw keyDamaged(record.keyId);
      const { owner, usage } = record;
      const isOfName = isWholeName(attempt.handle);
      requirePossible(usage, operations);
      // On a server with users, records created while it ran open belong to none of them.
      const granteeId = users === undefined ? grantee : await users.findOwner(grantee);
      if (granteeId === undefined) throw refuseField("grantee", `user or client ${grantee} does not exist`);
      if (granteeId === owner) throw refuseField("grantee", "owns the key and needs no grant");
      const grant: GrantRecord = {
        grantId: `grant-${randomUUID()}`,
        owner,
        ownerName: await nameOwner(deps, attempt, owner),
        keyId: isOfName ? "" : record.keyId,
        name: isOfName ? (record.name ?? "") : "",
        grantee: granteeId,
        granteeName: grantee,
        operations,
        expiresAt: readExpiry(expiresAt, deps.now()),
        createdAt: deps.now(),
      };
      await store.requireRoom(grantQuota, grant.owner);
      return write(async (transaction) => {
        await keys.grants.insert(transaction, grant);
        recordDone(
          transaction,
          principal,
          "CREATE_GRANT",
          subjectOfGrant(grant, record),
          describeGrant(grant),
        );
        return packGrant(grant);
      });
    }),
  );
}

/** Returns the name of a key's owner, as the caller wrote it if they did. */
async function nameOwner(
  { users }: ChangeDeps,
  { handle, principal }: Attempt,
  owner: string,
): Promise<string> {
  if (owner === principal.userId) return principal.user;
  const parsed = parseHandle(handle);
  const user = parsed.kind === "name" ? parsed.user : undefined;
  return user ?? (await users?.findOwnerName(owner)) ?? owner;
}

/** Refuses operations that the key cannot perform: most likely, the grant is for the wrong key. */
function requirePossible(usage: KeyUsage, operations: readonly string[]): void {
  const possible = listGrantable(usage);
  const index = operations.findIndex((operation) => !possible.includes(operation));
  if (index < 0) return;
  const problem = `${operations[index]} is not an operation of a key with usage ${usage}`;
  throw refuseField(`operations[${index}]`, `${problem}; choose from ${possible.join(", ")}`);
}

function readExpiry(expiresAt: Timestamp | undefined, now: Date): Date | undefined {
  if (expiresAt === undefined) return undefined;
  const date = readTime("expiresAt", expiresAt);
  if (date > now) return date;
  throw refuseField(
    "expiresAt",
    "is not in the future; send a later time, or omit it for a grant that never expires",
  );
}

function describeGrant({ grantId, granteeName, operations, name, expiresAt }: GrantRecord): string {
  return [
    `grantId=${grantId}`,
    `grantee=${granteeName}`,
    `operations=${operations.join(" ")}`,
    ...(name === "" ? [] : [`name=${name}`]),
    ...(expiresAt ? [`expiresAt=${expiresAt.toISOString()}`] : []),
  ].join(", ");
}

/**
 * Revokes a grant for one of the caller's keys.
 *
 * @throws GRANT_NOT_FOUND, IDEMPOTENCY_KEY_REUSED
 */
export async function revokeGrant(
  deps: ChangeDeps,
  grantId: string,
  caller: CallerInput,
): Promise<GrantMessage> {
  const { principal, idempotentCall } = caller;
  const attempt = beginAttempt("REVOKE_GRANT", { handle: grantId, ...caller });
  return recordingRefusal(deps, attempt, async () => {
    const changed = await deps.store.runIdempotent<Changed<GrantMessage>>(
      idempotentCall,
      wrapCodec(grantCodec),
      (write) =>
        write(async (transaction) => {
          const grant = await deps.keys.grants.find(grantId, transaction);
          if (grant === undefined || !isSeenBy(principal, grant.record))
            return { refusal: grantNotFound(grantId) };
          await removeGrant(deps, transaction, grant, principal, "revoked");
          return { answer: packGrant(grant.record) };
        }),
      { priority: "safety" },
    );
    return takeAnswer(changed);
  });
}

/** Ends an expired grant, unless it has ended already. */
export async function endGrant(deps: ChangeDeps, grantId: string, actor: Actor): Promise<void> {
  const { store, keys } = deps;
  await store.write(async (transaction) => {
    const grant = await keys.grants.find(grantId, transaction);
    if (grant === undefined || keys.grants.isCurrent(grant.record)) return;
    await removeGrant(deps, transaction, grant, actor, "expired");
  });
}

async function removeGrant(
  { keys }: ChangeDeps,
  transaction: WriteTransaction,
  grant: Stored<GrantRecord>,
  actor: Actor,
  end: GrantEnd,
): Promise<void> {
  await keys.grants.remove(transaction, grant);
  const { keyId } = grant.record;
  const key = keyId === "" ? undefined : await keys.findForChange(transaction, keyId);
  const details = describeGrantEnd(grant.record, end);
  recordDone(transaction, actor, "REVOKE_GRANT", subjectOfGrant(grant.record, key?.record), details);
}

/** A grant for a key lacks the name by which the key's entries can be found. */
function subjectOfGrant({ keyId, name, owner }: GrantRecord, key: KeyRecord | undefined): Subject {
  return { keyId: keyId || writeName(name), owner, keyName: key?.name ?? name };
}

function grantNotFound(grantId: string): ConnectError {
  return refuse("GRANT_NOT_FOUND", `grant ${grantId} does not exist`, { grantId });
}

export function packGrant(grant: GrantRecord): GrantMessage {
  const { grantId, keyId, name, ownerName, granteeName, operations, expiresAt, createdAt } = grant;
  return {
    grantId,
    keyId,
    name,
    owner: ownerName,
    grantee: granteeName,
    operations: [...operations],
    createdAt: timestampFromDate(createdAt),
    ...(expiresAt && { expiresAt: timestampFromDate(expiresAt) }),
  };
}
