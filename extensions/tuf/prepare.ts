/** Prepares new versions of metadata, and publishes them in a transaction. */

import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { refuse } from "../../src/errors.ts";
import type { CallerInput } from "../../src/identity/principal.ts";
import { type AnswerCodec, messageCodec } from "../../src/records/idempotency.ts";
import { hasAccount } from "../../src/services/kms/find-key.ts";
import type { KeyUse } from "../../src/services/kms/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import type { TufDeps, Who } from "./deps.ts";
import {
  addSeconds,
  buildSnapshot,
  buildTargets,
  buildTimestamp,
  findRoleOf,
  type Head,
  type OnlineRole,
} from "./metadata.ts";
import { removeOutdated } from "./remove-outdated.ts";
import { readRoleKey, type StoredRoleKey } from "./role-keys.ts";
import {
  maxFileBytes,
  roleTooLarge,
  type SignedFile,
  signMetadata,
  type UnsignedFile,
} from "./sign-metadata.ts";
import type { Metadata, Repository, TargetRecord } from "./tables.ts";

/** What to prepare. */
export interface Preparation {
  /** The repository as it will be. */
  readonly repository: Repository;
  readonly roles: ReadonlySet<OnlineRole>;
  /** Whether to publish the changes of targets and delegations; otherwise the published ones are signed again. */
  readonly withChanges?: boolean;
}

/** Signed metadata to publish together. */
export interface Prepared {
  readonly files: readonly SignedFile[];
  readonly sequence: number;
  readonly renewAt: Date | undefined;
}

/** The part of the validity that is left when the schedule renews metadata. */
const renewedWhenLeft = 1 / 3;

/**
 * Prepares new versions of some roles. Nothing is published or recorded yet.
 *
 * @throws the errors of signMetadata; RecordDamagedError
 */
export async function prepare(deps: TufDeps, who: Who, preparation: Preparation): Promise<Prepared> {
  const { repository, roles, withChanges = false } = preparation;
  const newest = await deps.tuf.readNewest(repository.repository);
  const sequence = withChanges ? repository.sequence : repository.publishedSequence;
  const files: SignedFile[] = [];
  const versions = new Map<string, Metadata>(newest);
  const add = async (unsigned: readonly UnsignedFile[]): Promise<void> => {
    const signed = await Promise.all(unsigned.map((file) => signMetadata(deps, who, file)));
    for (const file of signed) {
      files.push(file);
      versions.set(file.metadata.role, file.metadata);
    }
  };
  const start = (role: string, keyId: string, seconds: number) => {
    const version = (newest.get(role)?.version ?? 0) + 1;
    const head: Head = { version, expiresAt: addSeconds(deps.now(), seconds) };
    return { head, file: { ...head, repository: repository.repository, role, keyId, sequence } };
  };
  if (roles.has("targets")) {
    const delegated = await readDelegated(deps, repository.repository, withChanges);
    const targets = await readTargets(deps, repository.repository, sequence, new Set(delegated.keys()));
    const delegatedFiles = [...delegated].map(([role, { keyId }]) => {
      const { head, file } = start(role, keyId, repository.targetsSeconds);
      return { ...file, signed: buildTargets(head, targets.get(role) ?? [], undefined) };
    });
    if (withChanges) await add(delegatedFiles);
    const { head, file } = start("targets", repository.targetsKeyId, repository.targetsSeconds);
    const named = [...delegated].map(([role, key]) => ({ role, key }));
    await add([{ ...file, signed: buildTargets(head, targets.get("targets") ?? [], named) }]);
  }
  if (roles.has("snapshot")) {
    const { head, file } = start("snapshot", repository.snapshotKeyId, repository.snapshotSeconds);
    const listed = [...versions.values()].filter(
      ({ role }) => !["root", "snapshot", "timestamp"].includes(role),
    );
    await add([{ ...file, signed: buildSnapshot(head, listed) }]);
  }
  const snapshot = versions.get("snapshot");
  if (roles.has("timestamp") && snapshot !== undefined) {
    const { head, file } = start("timestamp", repository.timestampKeyId, repository.timestampSeconds);
    await add([{ ...file, signed: buildTimestamp(head, snapshot) }]);
  }
  const renewals = ["snapshot", "timestamp"].flatMap((role) => findRenewal(versions.get(role)) ?? []);
  return { files, sequence, renewAt: renewals.sort((a, b) => a.getTime() - b.getTime())[0] };
}

/** Returns when metadata are to be renewed. */
export function findRenewal(file: Metadata | undefined): Date | undefined {
  if (file === undefined) return undefined;
  const { publishedAt, expiresAt } = file;
  return new Date(expiresAt.getTime() - (expiresAt.getTime() - publishedAt.getTime()) * renewedWhenLeft);
}

/** Reads the delegated roles with their keys: of the next version, or of the published one. */
async function readDelegated(
  deps: TufDeps,
  repository: string,
  isNext: boolean,
): Promise<ReadonlyMap<string, StoredRoleKey>> {
  const delegations = await deps.tuf.listDelegations(repository);
  const named = delegations.flatMap(({ role, keyId, isRemoved, publishedKeyId }) => {
    const key = isNext ? (isRemoved ? undefined : keyId) : publishedKeyId;
    return key === undefined ? [] : [{ role, keyId: key }];
  });
  const keys = await Promise.all(named.map(({ keyId }) => readRoleKey(deps, keyId)));
  return new Map(keys.map((key, i) => [named[i]?.role ?? "", key]));
}

/** Targets to read at once. */
const pageRows = 1000;
/** Minimum bytes of a target in metadata, without its path: two hashes and the length. */
const minTargetBytes = 243;

/**
 * Reads the targets that exist after a change, by role.
 *
 * @throws ROLE_TOO_LARGE, RecordDamagedError
 */
async function readTargets(
  { tuf }: TufDeps,
  repository: string,
  sequence: number,
  delegated: ReadonlySet<string>,
): Promise<ReadonlyMap<string, readonly TargetRecord[]>> {
  const targets = new Map<string, TargetRecord[]>();
  const bytes = new Map<string, number>();
  for (let after = 0; ; ) {
    const rows = await tuf.targets.listWhere(
      sql<boolean>`repository = ${repository} and position > ${after} and added_sequence <= ${sequence}
        and (removed_sequence is null or removed_sequence > ${sequence})`,
      sql`position`,
      pageRows,
    );
    for (const found of rows) {
      const target = tuf.targets.requireIntact(found);
      const role = findRoleOf(target.path, delegated);
      const size = (bytes.get(role) ?? 0) + target.path.length + minTargetBytes;
      if (size > maxFileBytes) throw roleTooLarge(role);
      bytes.set(role, size);
      targets.getOrInsert(role, []).push(target);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageRows) return targets;
    after = Number(last.row.position);
  }
}

/**
 * Publishes prepared metadata, within a transaction, with the uses of the keys.
 *
 * @param planned the repository before the preparation
 * @param change what else changes
 * @returns undefined if the repository or a key has changed in the meantime: then nothing is written, and the
 *   caller prepares again
 */
export async function publishPrepared(
  { tuf, keys, users, cache, now, contents }: TufDeps,
  transaction: WriteTransaction,
  planned: Repository,
  { files, renewAt }: Prepared,
  change: Partial<Repository> = {},
): Promise<Repository | undefined> {
  const current = await tuf.findRepository(planned.repository, transaction);
  if (current.revision !== planned.revision) return undefined;
  const hasGrants = files.some(({ allowed }) => allowed.grant !== undefined);
  if (hasGrants && !(await hasAccount({ users }, current.owner, transaction))) return undefined;
  const use: KeyUse = {
    keys: files.map(({ allowed }) => allowed),
    events: files.map(({ event }) => event),
  };
  if (files.length > 0 && !(await keys.recordUseWithin(transaction, use))) {
    for (const { keyId } of use.keys) cache.forget(keyId);
    return undefined;
  }
  for (const file of files) await tuf.insertMetadata(transaction, file);
  await removeOutdated({ tuf, contents }, transaction, current, now());
  return tuf.change(transaction, current, { renewAt, ...change });
}

/** Maximum attempts to publish while others keep changing the repository or its keys. */
const maxPublications = 20;

/** Writes an answer, or finds in the transaction that the preparation is outdated: then it returns undefined. */
type WriteAnswer<Answer> = (
  change: (transaction: WriteTransaction) => Promise<Answer | undefined>,
) => Promise<Answer | undefined>;

/**
 * Prepares and publishes until nobody has changed the repository in between.
 *
 * @param attempt returns undefined to begin again
 * @throws IDEMPOTENCY_KEY_REUSED
 */
export async function publishUnchanged<Schema extends DescMessage>(
  { store }: Pick<TufDeps, "store">,
  { signal, idempotentCall }: CallerInput,
  schema: Schema,
  attempt: (write: WriteAnswer<MessageInitShape<Schema>>) => Promise<MessageInitShape<Schema> | undefined>,
): Promise<MessageInitShape<Schema>> {
  const { encode, decode } = messageCodec(schema);
  const codec: AnswerCodec<MessageInitShape<Schema> | undefined> = {
    encode: (answer) => (answer === undefined ? undefined : encode(answer)),
    decode,
  };
  const answer = await store.runIdempotent(idempotentCall, codec, async (write) => {
    for (let attempts = 1; attempts <= maxPublications; attempts += 1) {
      const published = await attempt(write);
      if (published !== undefined) return published;
      signal.throwIfAborted();
    }
    return undefined;
  });
  if (answer !== undefined) return answer;
  throw refuse("SERVER_BUSY", "the repository or its keys keep changing; try again");
}
