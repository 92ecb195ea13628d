/** Grants: the owner of a key allows another user some operations with it. */
import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { GrantSchema } from "#gen/kms/grant_pb.ts";
import { refuse, refuseField } from "../../errors.ts";
import { type IdempotentCall, messageCodec } from "../../records/idempotency.ts";
import { isSeenBy, type Principal } from "../../records/ownership.ts";
import type { Stored } from "../../records/table-declaration.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { readTime } from "../fields.ts";
import { type ChangeDeps, type Changed, takeAnswer, wrapCodec } from "./change.ts";
import { eventBy, type Subject, subjectOf } from "./event.ts";
import { aboutHandle, checkAllowed, keyNotFound, resolveHandle, type Wanted } from "./find-key.ts";
import { parseHandle, writeName } from "./handle.ts";
import { describeGrantEnd, type GrantEnd, type GrantRecord, grantQuota } from "./tables.ts";
import { recordingRefusal } from "./use-key.ts";

/** A grant as a message. */
export type GrantMessage = MessageInitShape<typeof GrantSchema>;

const grantCodec = messageCodec(GrantSchema);

/** A grant to create. */
export interface GrantInput {
  /** The handle of a key, or empty. */
  readonly keyId: string;
  /** The name of a key, or empty. */
  readonly name: string;
  readonly grantee: string;
  readonly operations: readonly string[];
  readonly expiresAt: Timestamp | undefined;
  readonly principal: Principal;
  readonly signal: AbortSignal;
  readonly idempotentCall: IdempotentCall | undefined;
}

/**
 * Creates a grant, of one key or of all versions of a name.
 *
 * @throws KEY_NOT_FOUND, GRANT_MISSING for a caller who does not own the key, FIELD_INVALID, IDEMPOTENCY_KEY_REUSED,
 *   QUOTA_EXCEEDED
 */
export async function createGrant(deps: ChangeDeps, input: GrantInput): Promise<GrantMessage> {
  const { store, keys, users } = deps;
  const { principal, idempotentCall, grantee, signal } = input;
  const handle = input.keyId || writeName(input.name);
  const wanted: Wanted = { handle, principal, operation: "CREATE_GRANT", about: aboutHandle(handle) };
  return recordingRefusal(deps, wanted, signal, () =>
    store.runIdempotent(idempotentCall, grantCodec, async (write) => {
      const target = await findTarget(deps, wanted);
      // With users, the owner of what an open server created is none of them.
      const granteeId = users === undefined ? grantee : await users.findOwner(grantee);
      if (granteeId === undefined) throw refuseField("grantee", `there is no user or client ${grantee}`);
      if (granteeId === target.owner) throw refuseField("grantee", "owns the key, and needs no grant");
      const grant: GrantRecord = {
        grantId: `grant-${randomUUID()}`,
        owner: target.owner,
        ownerName: target.ownerName,
        keyId: target.isName ? "" : target.subject.keyId,
        name: target.isName ? target.subject.keyName : "",
        grantee: granteeId,
        granteeName: grantee,
        operations: input.operations,
        expiresAt: readExpiry(input.expiresAt, deps.now()),
        createdAt: deps.now(),
      };
      await store.requireRoom(grantQuota, grant.owner);
      return write(async (transaction) => {
        await keys.grants.insert(transaction, grant);
        const details = describeGrant(grant);
        transaction.audit(
          eventBy(principal, target.subject, { operation: "CREATE_GRANT", outcome: "OK", details }),
        );
        return packGrant(grant);
      });
    }),
  );
}

/** The target of a grant. */
interface Target {
  readonly subject: Subject;
  readonly owner: string;
  readonly ownerName: string;
  /** Whether it is for all versions of the name. */
  readonly isName: boolean;
}

async function findTarget(deps: ChangeDeps, wanted: Wanted): Promise<Target> {
  const { keys, users } = deps;
  const key = await keys.find(await resolveHandle(deps, wanted));
  await checkAllowed(deps, wanted, key?.record);
  if (key === undefined) throw keyNotFound(wanted.handle);
  const parsed = parseHandle(wanted.handle);
  const isName = parsed.kind === "name" && parsed.version === undefined;
  const { owner } = key.record;
  const { principal } = wanted;
  const user = parsed.kind === "name" ? parsed.user : undefined;
  const ownerName =
    owner === principal.userId ? principal.user : (user ?? (await users?.findOwnerName(owner)) ?? owner);
  return { subject: subjectOf(key.record), owner, ownerName, isName };
}

function readExpiry(expiresAt: Timestamp | undefined, now: Date): Date | undefined {
  if (expiresAt === undefined) return undefined;
  const date = readTime("expiresAt", expiresAt);
  if (date > now) return date;
  throw refuseField(
    "expiresAt",
    "is not in the future; send a later time, or none for a grant without an end",
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

/** Ends a grant of one of the caller's keys. @throws GRANT_NOT_FOUND, IDEMPOTENCY_KEY_REUSED */
export async function revokeGrant(
  deps: ChangeDeps,
  input: Pick<GrantInput, "principal" | "signal" | "idempotentCall"> & { readonly grantId: string },
): Promise<GrantMessage> {
  const { store } = deps;
  const { grantId, principal, signal, idempotentCall } = input;
  const wanted: Wanted = {
    handle: grantId,
    principal,
    operation: "REVOKE_GRANT",
    about: aboutHandle(grantId),
  };
  return recordingRefusal(deps, wanted, signal, async () => {
    const changed = await store.writeIdempotent<Changed<GrantMessage>>(
      idempotentCall,
      wrapCodec(grantCodec),
      async (transaction) => {
        const grant = await deps.keys.grants.find(grantId, transaction);
        const isOwn = grant !== undefined && isSeenBy(principal, grant.record);
        if (!isOwn) return { refusal: grantNotFound(grantId) };
        await removeGrant(deps, transaction, grant, principal, "revoked");
        return { answer: packGrant(grant.record) };
      },
      { priority: "safety" },
    );
    return takeAnswer(changed);
  });
}

/** Ends a grant that has expired, unless it has ended already. */
export async function endGrant(deps: ChangeDeps, grantId: string, principal: Principal): Promise<void> {
  const { store, keys } = deps;
  await store.write(async (transaction) => {
    const grant = await keys.grants.find(grantId, transaction);
    if (grant === undefined || keys.grants.isCurrent(grant.record)) return;
    await removeGrant(deps, transaction, grant, principal, "expired");
  });
}

async function removeGrant(
  { keys }: ChangeDeps,
  transaction: WriteTransaction,
  grant: Stored<GrantRecord>,
  principal: Principal,
  end: GrantEnd,
): Promise<void> {
  await keys.grants.remove(transaction, grant);
  const { keyId, name, owner } = grant.record;
  const subject = { keyId: keyId || writeName(name), owner, keyName: name };
  const details = describeGrantEnd(grant.record, end);
  transaction.audit(eventBy(principal, subject, { operation: "REVOKE_GRANT", outcome: "OK", details }));
}

function grantNotFound(grantId: string): ConnectError {
  return refuse("GRANT_NOT_FOUND", `grant ${grantId} does not exist`, { grantId });
}

/** A grant as a message. */
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
