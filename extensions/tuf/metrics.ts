/** Metrics of repositories. */
import { sql } from "kysely";
import type { ServiceMetrics } from "../../src/services/service-module.ts";
import type { TufDeps } from "./deps.ts";
import { isNewest } from "./store.ts";

/**
 * Maximum series. If there are more roles, owners take turns, so that none can hide another's roles: first
 * come the roles that expire first of each owner, then their second ones, and so on.
 */
const maxSeries = 200;

/**
 * Exposes when metadata expire.
 *
 * @returns a function that counts a renewal
 */
export function exposeRepositories(
  { store, now }: Pick<TufDeps, "store" | "now">,
  metrics: ServiceMetrics,
): () => void {
  metrics.watchGauge({
    name: "qsp_tuf_metadata_expires_seconds",
    help: "Seconds until a role's newest metadata expire; negative afterwards. Of the first 200 to expire, in turns of their owners.",
    labelNames: ["repository", "role"],
    read: async () => {
      const ofOwner = sql<number>`row_number() over (
        partition by (select owner from tuf_repositories as owned where owned.repository = tuf_metadata.repository)
        order by expires_at_ms, repository, role)`;
      const rows = await store.reader
        .selectFrom("tuf_metadata")
        .select(["repository", "role", "expires_at_ms", ofOwner.as("place")])
        .where(isNewest)
        .where(isRead)
        .orderBy("place")
        .orderBy("expires_at_ms")
        .limit(maxSeries)
        .execute();
      return rows.map(({ repository, role, expires_at_ms }) => ({
        labels: { repository, role },
        value: (expires_at_ms - now().getTime()) / 1000,
      }));
    },
  });
  return metrics.addCounter(
    "qsp_tuf_renewals_total",
    "Renewals of snapshots and timestamps that this server published by schedule.",
  );
}

/** Clients do not read the metadata of a removed delegation. */
const isRead = sql<boolean>`not exists (
  select 1 from tuf_delegations as removed
  where removed.repository = tuf_metadata.repository and removed.role = tuf_metadata.role
  and removed.published_key_id is null)`;
