import type { SqlTypes, TableOwner } from "../database/schema.ts";
import { column, type RowOf } from "../records/columns.ts";
import { addColumns, createTable } from "../records/create-table.ts";

export interface LogTables {
  readonly entries: "audit_entries" | "identity_entries";
  readonly head: "audit_head" | "identity_head";
  readonly checkpoints: "audit_checkpoints" | "identity_checkpoints";
  /**
   * The `purpose` member of the signed checkpoint text, so that one log's checkpoint proves nothing about the
   * other.
   */
  readonly purpose: string;
  /** The member of an entry's text that identifies what the entry is about. */
  readonly subject: "keyId" | "subject";
}

/** The key log: what the key service does and refuses. */
export const keyLog: LogTables = {
  entries: "audit_entries",
  head: "audit_head",
  checkpoints: "audit_checkpoints",
  purpose: "audit checkpoint",
  subject: "keyId",
};

/** The identity log: log-ins, users, clients, issuer keys and revocations. */
export const identityLog: LogTables = {
  entries: "identity_entries",
  head: "identity_head",
  checkpoints: "identity_checkpoints",
  purpose: "identity audit checkpoint",
  subject: "subject",
};

/** The columns of an entry. The rows form a hash chain: see chain.ts. */
export const entryColumns = {
  /** Starts at 1, without gaps. */
  sequence: column.integer("sequence"),
  keyId: column.text("key_id"),
  operation: column.text("operation"),
  user: column.text("user_name"),
  timestamp: column.time("occurred_at_ms"),
  // Verification checks it through the chain's hash.
  outcome: column.text<"outcome", "OK" | "REFUSED">("outcome"),
  details: column.text("details"),
  entryHash: column.text("entry_hash"),
  /** Binds entry_hash to a key that the database does not contain in the clear. */
  entryTag: column.text("entry_tag"),
  clientAddress: column.text("client_address"),
  requestId: column.text("request_id"),
  owner: column.text("owner"),
  keyName: column.text("key_name"),
};

/** The columns of the end of the chain, which is a single row. */
const headColumns = {
  id: column.integer("id"),
  sequence: column.integer("sequence"),
  entryHash: column.text("entry_hash"),
  tag: column.text("head_tag"),
};

/** The columns of signed earlier ends of the chain. */
export const checkpointColumns = {
  sequence: column.integer("sequence"),
  entryHash: column.text("entry_hash"),
  signedAt: column.time("signed_at_ms"),
  signature: column.bytes("signature"),
};

export type AuditEntriesTable = RowOf<typeof entryColumns>;
export type AuditHeadTable = RowOf<typeof headColumns>;
export type AuditCheckpointsTable = RowOf<typeof checkpointColumns>;

declare module "../database/schema.ts" {
  interface Schema {
    audit_entries: AuditEntriesTable;
    audit_head: AuditHeadTable;
    audit_checkpoints: AuditCheckpointsTable;
    identity_entries: AuditEntriesTable;
    identity_head: AuditHeadTable;
    identity_checkpoints: AuditCheckpointsTable;
  }
}

/** The original columns of entries, and those added by the second step. */
const { clientAddress, requestId, owner, keyName, ...firstColumns } = entryColumns;

/** The tables of both logs. */
export const auditTables: TableOwner = {
  tables: {
    audit_entries: ["sequence"],
    audit_head: ["id"],
    audit_checkpoints: ["sequence"],
    identity_entries: ["sequence"],
    identity_head: ["id"],
    identity_checkpoints: ["sequence"],
  },
  steps: {
    "0001-audit": (types) => [
      createTable(types, { name: keyLog.entries, columns: firstColumns, key: ["sequence"] }),
      "create index audit_entries_by_key_id_sequence on audit_entries (key_id, sequence)",
      ...createEnds(keyLog, types),
    ],
    "0002-audit": (types) => [
      ...addColumns(types, keyLog.entries, [clientAddress, requestId, owner, keyName]),
      "create index audit_entries_by_owner_sequence on audit_entries (owner, sequence)",
      `create index audit_entries_by_owner_key_name_sequence on audit_entries (owner, key_name, sequence)
        where key_name <> ''`,
    ],
    "0003-audit": (types) => [
      createTable(types, { name: identityLog.entries, columns: entryColumns, key: ["sequence"] }),
      "create index identity_entries_by_key_id_sequence on identity_entries (key_id, sequence)",
      ...createEnds(identityLog, types),
    ],
  },
};

/** Creates the tables for a log's end and checkpoints. */
function createEnds({ head, checkpoints }: LogTables, types: SqlTypes): string[] {
  return [
    createTable(types, { name: head, columns: headColumns, key: ["id"] }),
    createTable(types, { name: checkpoints, columns: checkpointColumns, key: ["sequence"] }),
  ];
}
