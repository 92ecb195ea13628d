/** Writes the chain. Entries are written in the same transaction as the events that they record. */
import type { Kysely } from "kysely";
import type { Statement } from "../database/connection.ts";
import type { Reader } from "../database/database.ts";
import type { Schema } from "../database/schema.ts";
import { StoreFailureError } from "../database/store-error.ts";
import { toRow } from "../records/columns.ts";
import { equalTags } from "../records/tag.ts";
import {
  type AuditHead,
  emptyChain,
  emptyContext,
  hashEntry,
  type NewAuditEntry,
  tagEntry,
  tagHead,
} from "./chain.ts";
import { selectHead, toHead } from "./log.ts";
import { createRecentHashes, type RecentHashes } from "./recent-hashes.ts";
import {
  type AuditEntriesTable,
  type AuditHeadTable,
  entryColumns,
  keyLog,
  type LogTables,
} from "./tables.ts";

/** The entries of one transaction, which are written when it ends. */
export interface PendingEntries {
  readonly chain: AuditChain;
  append(entry: NewAuditEntry): void;
  list(): readonly NewAuditEntry[];
  /** Returns the statements that write the entries, of which there is at least one, and the new end. */
  finish(): Statement[];
  /** Call this once the entries are on disk. */
  committed(): void;
}

/** Maximum entries per statement; each has 13 values, and SQLite accepts 32,766. */
const maxRowsPerStatement = 64;

/**
 * Reads and writes a database's chain. It remembers the newest end that it has seen, so that a running
 * program detects if an older log is restored.
 */
export interface AuditChain {
  readonly tables: LogTables;
  readonly tagKey: Uint8Array;
  /** Reads the end of the chain; runs first in each write transaction. */
  readonly readHead: Statement;
  /**
   * Starts a transaction's entries.
   *
   * @param rows the result of `readHead`
   * @throws StoreFailureError if the end was changed or an older log was restored
   */
  start(rows: readonly unknown[], now: () => Date): PendingEntries;
  /** The newest end that this program has seen. */
  newestSeen(): AuditHead;
  /** Hashes of the newest entries that this program wrote. */
  readonly recent: Pick<RecentHashes, "list">;
  /**
   * Reads the end, outside a transaction.
   *
   * @throws StoreFailureError as `start` does
   */
  readTrueHead(db: Reader): Promise<AuditHead>;
}

/**
 * @param db builds queries, but runs none
 * @param tagKey RootKeys.audit
 */
export function createAuditChain(
  db: Kysely<Schema>,
  tagKey: Uint8Array,
  tables: LogTables = keyLog,
): AuditChain {
  const inserts = new Map<number, string>();
  /** Caches SQL by row count, because building a query costs more than running it. */
  const insertOf = (rows: readonly AuditEntriesTable[]): Statement => {
    let sql = inserts.get(rows.length);
    if (sql === undefined) {
      sql = db
        .insertInto(tables.entries)
        .columns(columns)
        .values([...rows])
        .compile().sql;
      inserts.set(rows.length, sql);
    }
    return { sql, parameters: rows.flatMap((row) => columns.map((column) => row[column])) };
  };
  const headRow = { id: 1, sequence: 0, entry_hash: "", head_tag: "" };
  const insertHead = db.insertInto(tables.head).values(headRow).compile().sql;
  const { id: _, ...changing } = headRow;
  const updateHead = db.updateTable(tables.head).set(changing).where("id", "=", 1).compile().sql;
  let newest = emptyChain;
  const recent = createRecentHashes();

  /** @param known an end that was seen before the row was read */
  const trust = (row: AuditHeadTable | undefined, known: AuditHead): AuditHead => {
    const head = toHead(row);
    if (row && !equalTags(row.head_tag, tagHead(tagKey, head)))
      throw new StoreFailureError(
        "CORRUPT",
        new Error("the end of the audit chain was changed outside the server"),
      );
    const isOther = head.sequence === known.sequence && head.entryHash !== known.entryHash;
    if (head.sequence < known.sequence || isOther)
      throw new StoreFailureError("CORRUPT", new Error("an older audit chain replaced a newer one"));
    return head;
  };
  const see = (head: AuditHead): void => {
    if (head.sequence > newest.sequence) newest = head;
  };

  const chain: AuditChain = {
    tables,
    tagKey,
    readHead: selectHead(db, tables).compile(),
    newestSeen: () => newest,
    recent,
    async readTrueHead(reader) {
      const known = newest;
      const head = trust(await selectHead(reader, tables).executeTakeFirst(), known);
      see(head);
      return head;
    },
    start(rows, now) {
      const [row] = rows as readonly AuditHeadTable[];
      let head = trust(row, newest);
      see(head);
      const given: NewAuditEntry[] = [];
      const entries: AuditEntriesTable[] = [];
      return {
        chain,
        list: () => given,
        committed() {
          see(head);
          for (const { sequence, entry_hash } of entries) recent.add(sequence, entry_hash);
        },
        append(entry) {
          given.push(entry);
          const placed = { ...emptyContext, ...entry, sequence: head.sequence + 1, timestamp: now() };
          const entryHash = hashEntry(placed, head.entryHash, tables);
          head = { sequence: placed.sequence, entryHash };
          entries.push(
            toRow(entryColumns, {
              ...placed,
              entryHash,
              entryTag: tagEntry(tagKey, { ...placed, entryHash }),
            }),
          );
        },
        finish() {
          const tag = tagHead(tagKey, head);
          const headValues = [head.sequence, head.entryHash, tag];
          return [
            ...chunk(entries, maxRowsPerStatement).map(insertOf),
            row === undefined
              ? { sql: insertHead, parameters: [1, ...headValues] }
              : { sql: updateHead, parameters: [...headValues, 1] },
          ];
        },
      };
    },
  };
  return chain;
}

/** Column names of an entry, in write order. */
const columns = Object.values(entryColumns).map(({ name }) => name);

function chunk<T>(values: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, i) =>
    values.slice(i * size, (i + 1) * size),
  );
}
