/** Targets: drafts, published files and removals. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { sql } from "kysely";
import type {
  ListTargetsRequest,
  ListTargetsResponseSchema,
  RemoveTargetRequest,
  TargetSchema,
} from "#gen/tuf/repository_service_pb.ts";
import { RemoveTargetResponseSchema } from "#gen/tuf/repository_service_pb.ts";
import { refuse } from "../../src/errors.ts";
import type { CallerInput } from "../../src/identity/principal.ts";
import { messageCodec } from "../../src/records/idempotency.ts";
import type { FindOptions, Found } from "../../src/records/record-table.ts";
import { readList } from "../../src/services/fields.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import type { TufDeps } from "./deps.ts";
import { findRoleOf } from "./metadata.ts";
import { packTarget } from "./pack.ts";
import { reasons } from "./reasons.ts";
import type { Repository, TargetRecord } from "./tables.ts";

/** A target to add, whose content is stored. */
export type NewTarget = Pick<
  TargetRecord,
  "contentId" | "path" | "version" | "deviceTypes" | "length" | "sha256" | "sha512"
>;

/** A draft that was added, and the contents to erase after the transaction. */
export interface AddedTarget {
  readonly added: MessageInitShape<typeof TargetSchema>;
  readonly replaced: readonly string[];
}

/**
 * Adds a target as a draft, within a transaction. Replaces a draft of the same path, and with the next Publish
 * a published target.
 *
 * @throws REPOSITORY_NOT_FOUND, QuotaExceededError
 */
export async function addTarget(
  deps: TufDeps,
  transaction: WriteTransaction,
  repository: string,
  target: NewTarget,
): Promise<AddedTarget> {
  const { tuf, now } = deps;
  const current = await tuf.findRepository(repository, transaction);
  const { draft, published } = await findLive(deps, transaction, current, target.path);
  const sequence = current.sequence + 1;
  const { owner } = current;
  const added: TargetRecord = {
    ...target,
    repository,
    owner,
    addedSequence: sequence,
    removedSequence: undefined,
    uploadedAt: now(),
  };
  if (draft !== undefined) await removeDraft(deps, transaction, draft);
  if (published !== undefined)
    await tuf.targets.update(transaction, published, {
      removedSequence: published.record.removedSequence ?? sequence,
    });
  await tuf.targets.insert(transaction, added);
  // Metadata in preparation may name a draft that no longer exists.
  await tuf.change(transaction, current, {
    sequence,
    ...(draft === undefined && { revision: current.revision }),
  });
  const role = findRoleOf(target.path, await readDelegated(deps, repository, transaction));
  return {
    added: packTarget(current, added, role),
    replaced: draft === undefined ? [] : [draft.record.contentId],
  };
}

/**
 * Removes a target: a draft at once, a published target with the next Publish. Without the draft, the
 * published target of its path stays.
 *
 * @throws REPOSITORY_NOT_FOUND, TARGET_NOT_FOUND, IDEMPOTENCY_KEY_REUSED
 */
export async function removeTarget(
  deps: TufDeps,
  { repository: name, path }: RemoveTargetRequest,
  { principal, idempotentCall }: CallerInput,
) {
  const { store, tuf, contents } = deps;
  await tuf.findRepository(name, { principal });
  const removed: string[] = [];
  const answer = await store.runIdempotent(
    idempotentCall,
    messageCodec(RemoveTargetResponseSchema),
    (write) =>
      write(async (transaction) => {
        const current = await tuf.findRepository(name, transaction);
        const { draft, published } = await findLive(deps, transaction, current, path);
        if (draft !== undefined) {
          await removeDraft(deps, transaction, draft);
          removed.push(draft.record.contentId);
          if (published !== undefined)
            await tuf.targets.update(transaction, published, { removedSequence: undefined });
          await tuf.change(transaction, current, {});
          return {};
        }
        if (published === undefined || published.record.removedSequence !== undefined)
          throw refuse(
            reasons.targetNotFound,
            `repository ${name} has no target ${path}, or its removal is due`,
            {
              repository: name,
              path,
            },
          );
        const sequence = current.sequence + 1;
        await tuf.targets.update(transaction, published, { removedSequence: sequence });
        await tuf.change(transaction, current, { sequence, revision: current.revision });
        return {};
      }),
  );
  await contents.erase(removed);
  return answer;
}

interface LiveTargets {
  readonly draft: Found<TargetRecord> | undefined;
  readonly published: Found<TargetRecord> | undefined;
}

/** Finds the draft and the published target of a path. */
async function findLive(
  { tuf }: TufDeps,
  { db }: WriteTransaction,
  { repository, publishedSequence }: Repository,
  path: string,
): Promise<LiveTargets> {
  const rows = await tuf.targets
    .select(db)
    .where("repository", "=", repository)
    .where("path", "=", path)
    .where(sql<boolean>`(removed_sequence is null or removed_sequence > ${publishedSequence})`)
    .execute();
  const found = rows.map(tuf.targets.readRow);
  for (const one of found) tuf.targets.requireIntact(one);
  const isDraft = ({ record }: Found<TargetRecord>): boolean => record.addedSequence > publishedSequence;
  return { draft: found.find(isDraft), published: found.find((one) => !isDraft(one)) };
}

async function removeDraft(
  { tuf, contents }: TufDeps,
  transaction: WriteTransaction,
  draft: Found<TargetRecord>,
): Promise<void> {
  await tuf.targets.remove(transaction, draft);
  await contents.remove(transaction, [draft.record.contentId]);
}

/**
 * Lists a repository's targets, except those whose removal is published.
 *
 * @throws REPOSITORY_NOT_FOUND, FIELD_INVALID
 */
export async function listTargets(
  deps: TufDeps,
  { repository: name, ...fields }: ListTargetsRequest,
  { principal }: Pick<CallerInput, "principal">,
): Promise<MessageInitShape<typeof ListTargetsResponseSchema>> {
  const repository = await deps.tuf.findRepository(name, { principal });
  const { publishedSequence } = repository;
  const { rows, ...page } = await readList(deps.tuf.targets, fields, {
    filters: { repository: name },
    narrowing: {
      name: "live",
      where: sql<boolean>`(removed_sequence is null or removed_sequence > ${publishedSequence})`,
    },
  });
  const delegated = await readDelegated(deps, name);
  const targets = rows.map(({ record, isIntact }) =>
    isIntact
      ? packTarget(repository, record, findRoleOf(record.path, delegated))
      : { path: record.path, damaged: true },
  );
  return { ...page, targets };
}

/** Reads the names of the delegated roles, as the next Publish has them. */
async function readDelegated(
  { tuf }: TufDeps,
  repository: string,
  { db }: Pick<FindOptions, "db"> = {},
): Promise<ReadonlySet<string>> {
  const delegations = await tuf.listDelegations(repository, db);
  return new Set(delegations.filter(({ isRemoved }) => !isRemoved).map(({ role }) => role));
}

/**
 * Counts the targets that the next Publish adds or replaces, and removes without replacing them. Changes after
 * the repository was read do not count: that Publish does not contain them.
 */
export async function countChanges(
  { store }: Pick<TufDeps, "store">,
  { repository, publishedSequence, sequence }: Repository,
  db: FindOptions["db"] = store.reader,
): Promise<{ added: number; removed: number }> {
  const count = (where: Condition): Promise<number> => countTargets(db, repository, where);
  const isNext = sql`between ${publishedSequence + 1} and ${sequence}`;
  const added = await count(sql<boolean>`added_sequence ${isNext}`);
  const removed = await count(sql<boolean>`removed_sequence ${isNext} and path not in (
    select draft.path from tuf_targets as draft
    where draft.repository = ${repository} and draft.added_sequence ${isNext})`);
  return { added, removed };
}

export function countPublished(
  { store }: Pick<TufDeps, "store">,
  { repository, publishedSequence }: Repository,
  db: FindOptions["db"] = store.reader,
): Promise<number> {
  return countTargets(
    db,
    repository,
    sql<boolean>`added_sequence <= ${publishedSequence}
      and (removed_sequence is null or removed_sequence > ${publishedSequence})`,
  );
}

type Condition = ReturnType<typeof sql<boolean>>;

async function countTargets(
  db: NonNullable<FindOptions["db"]>,
  repository: string,
  where: Condition,
): Promise<number> {
  const { row_count } = await db
    .selectFrom("tuf_targets")
    .select(({ fn }) => fn.countAll<number>().as("row_count"))
    .where("repository", "=", repository)
    .where(where)
    .executeTakeFirstOrThrow();
  return Number(row_count);
}
