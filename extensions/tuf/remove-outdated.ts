/** Removes files that clients no longer need. */
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import type { TufDeps } from "./deps.ts";
import type { Repository } from "./tables.ts";

/** Maximum seconds to keep a file after its successor was published; fewer if snapshots are valid for less. */
const maxKeptSeconds = 7 * 24 * 3600;
/** Maximum targets to remove with one publication, so that it does not delay other writes for long. */
const maxRemoved = 500;

/**
 * Removes metadata and targets, within a transaction. A client that has just read an older snapshot can still
 * read the files that it names: they stay as long as such a snapshot can be valid. All roots stay.
 */
export async function removeOutdated(
  { tuf, contents }: Pick<TufDeps, "tuf" | "contents">,
  transaction: WriteTransaction,
  { repository, snapshotSeconds }: Repository,
  now: Date,
): Promise<void> {
  const { db } = transaction;
  const edgeMs = now.getTime() - Math.min(snapshotSeconds, maxKeptSeconds) * 1000;
  // The newest version of each role that existed then; clients of that time may still read it.
  const edges = await db
    .selectFrom("tuf_metadata")
    .select("role")
    .select(({ fn }) => [fn.max("version").as("version"), fn.max("sequence").as("sequence")])
    .where("repository", "=", repository)
    .where("published_at_ms", "<=", edgeMs)
    .where("role", "!=", "root")
    .groupBy("role")
    .execute();
  for (const { role, version } of edges)
    for (const table of ["tuf_metadata", "tuf_metadata_contents"] as const)
      await db
        .deleteFrom(table)
        .where("repository", "=", repository)
        .where("role", "=", role)
        .where("version", "<", Number(version))
        .execute();
  const sequence = Number(edges.find(({ role }) => role === "targets")?.sequence ?? 0);
  const rows = await db
    .selectFrom("tuf_targets")
    .selectAll()
    .where("repository", "=", repository)
    .where("removed_sequence", "<=", sequence)
    .limit(maxRemoved)
    .execute();
  for (const row of rows) await tuf.targets.remove(transaction, tuf.targets.readRow(row));
  if (rows.length > 0)
    await contents.remove(
      transaction,
      rows.map(({ content_id }) => content_id),
    );
}
