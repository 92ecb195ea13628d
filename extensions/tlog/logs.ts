/** The service's logs, by name. */
import { hash } from "node:crypto";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { refuse } from "../../src/errors.ts";
import type { LogMetrics } from "../../src/services/service-module.ts";
import type { Store } from "../../src/store/store.ts";
import { createBlockSource } from "./block-source.ts";
import { type CosignatureStore, createCosignatureStore } from "./cosignature-store.ts";
import { type Log, openLog } from "./log.ts";
import type { LogOptions } from "./log-settings.ts";
import { createAuditSource } from "./source.ts";
import type { VerifierKey } from "./verifier-keys.ts";

/** A log and its cosignature store. */
export interface ServedLog extends Log {
  readonly cosignatures: CosignatureStore;
}

export interface LogServiceDeps {
  readonly store: Store;
  readonly provider: CryptoProvider;
  readonly logs: readonly ServedLog[];
  readonly witnesses: readonly VerifierKey[];
  readonly areEntriesPublic: boolean;
  readonly metrics: LogMetrics;
  readonly now: () => Date;
}

export interface OpenLogsInput {
  readonly store: Store;
  readonly provider: CryptoProvider;
  readonly options: Pick<LogOptions, "origin" | "witnesses">;
  readonly metrics: LogMetrics;
  readonly now: () => Date;
}

/**
 * Opens the logs.
 *
 * @throws RecordDamagedError if one of their keys is missing or was modified
 */
export async function openLogs({
  store,
  provider,
  options,
  metrics,
  now,
}: OpenLogsInput): Promise<ServedLog[]> {
  const prefix = options.origin === "" ? nameStore(store) : options.origin;
  const sources = [createAuditSource(store), createBlockSource(store, provider)];
  const open: ServedLog[] = [];
  for (const source of sources) {
    const onPublish = (entries: number, published: number, seconds: number | undefined): void =>
      metrics.logPublished(source.log, entries, published, seconds);
    const origin = `${prefix}/${source.log}`;
    const log = await openLog({ store, provider, source, origin, now, onPublish });
    open.push({ ...log, cosignatures: createCosignatureStore(store, source.log, options.witnesses) });
  }
  return open;
}

/** Derives a name from the store's key, so that no two stores' logs have the same name. */
function nameStore(store: Pick<Store, "checkpointKey">): string {
  return `quantum-safe-playground/${hash("sha256", store.checkpointKey.exportRaw(), "hex").slice(0, 16)}`;
}

/**
 * Finds a log.
 *
 * @throws LOG_NOT_FOUND
 */
export function findLog({ logs }: Pick<LogServiceDeps, "logs">, name: string): ServedLog {
  const log = logs.find((one) => one.name === name);
  if (log !== undefined) return log;
  throw refuse(
    "LOG_NOT_FOUND",
    `log "${name}" does not exist; use ${logs.map((one) => one.name).join(" or ")}`,
    {
      log: name,
    },
  );
}
