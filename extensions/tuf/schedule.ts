/**
 * Renews snapshots and timestamps before they expire.
 *
 * Every server polls for due repositories. The transaction that publishes checks that nobody has published in
 * the meantime, so each renewal is published and recorded once. After a crash, the next poll of any server
 * finds it again.
 */
import { createDueWork, type DueKind } from "../../src/database/due-work.ts";
import { poll } from "../../src/database/poll.ts";
import { type Principal, systemPrincipal } from "../../src/records/ownership.ts";
import { actFor, type TufDeps } from "./deps.ts";
import type { OnlineRole } from "./metadata.ts";
import { findRenewal, prepare, publishPrepared } from "./prepare.ts";
import type { Repository } from "./tables.ts";

const pollIntervalMs = 2000;
/** Interval of reports about overdue renewals. */
const reportIntervalMs = 10_000;

export function createSchedule(deps: TufDeps, onRenewal: () => void, signal: AbortSignal) {
  const { store, tuf, now } = deps;
  const kind: DueKind = {
    work: "tuf_renew",
    count: tuf.due.count,
    list: async (atMs, limit, after) =>
      (await tuf.due.list(atMs, limit, after)).map(({ record, ...position }) => ({
        ...position,
        about: { repository: record.repository },
        run: () => renew(deps, record.repository, onRenewal, signal),
      })),
  };
  return createDueWork(kind, { background: store.background, now });
}

/**
 * Starts renewing.
 *
 * @returns a function that stops it, and waits for work in progress
 */
export function startSchedule(deps: TufDeps, onRenewal: () => void): () => Promise<void> {
  const { background } = deps.store;
  const stopping = new AbortController();
  const { doDue, reportOverdue } = createSchedule(deps, onRenewal, stopping.signal);
  const working = { work: "tuf_schedule", everyMs: pollIntervalMs, startsAtOnce: true, background };
  const stopWorking = poll(working, doDue);
  const stopReporting = poll({ ...working, work: "tuf_overdue", everyMs: reportIntervalMs }, reportOverdue);
  return async () => {
    stopping.abort();
    await stopWorking();
    await stopReporting();
  };
}

/**
 * Renews what is due in a repository.
 *
 * @throws the errors of prepare
 */
async function renew(deps: TufDeps, name: string, onRenewal: () => void, signal: AbortSignal): Promise<void> {
  const { store, tuf } = deps;
  const repository = await tuf.findRepository(name);
  const roles = await findDueRoles(deps, repository);
  if (roles.size === 0) return;
  const prepared = await prepare(deps, await actFor(deps, repository, { principal: schedule, signal }), {
    repository,
    roles,
  });
  const published = await store.write((transaction) =>
    publishPrepared(deps, transaction, repository, prepared),
  );
  // If someone has published since, the repository is due again when that says so.
  if (published !== undefined) onRenewal();
}

/** A new snapshot needs a new timestamp. */
async function findDueRoles(
  { tuf, now }: TufDeps,
  { repository }: Repository,
): Promise<ReadonlySet<OnlineRole>> {
  const newest = await tuf.readNewest(repository);
  const isDue = (role: OnlineRole): boolean => (findRenewal(newest.get(role)) ?? new Date(0)) <= now();
  if (isDue("snapshot")) return new Set(["snapshot", "timestamp"]);
  return new Set(isDue("timestamp") ? ["timestamp"] : []);
}

const schedule: Principal = { ...systemPrincipal, user: "schedule" };
