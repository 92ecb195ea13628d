import type { TableOwner } from "../database/schema.ts";
import { column, type RowOf } from "./columns.ts";
import { createTable } from "./create-table.ts";

/** Answers to calls with an idempotency key. */
const answerTable = {
  name: "idempotent_answers",
  columns: {
    userId: column.text("user_id"),
    idempotencyKey: column.text("idempotency_key"),
    requestHash: column.text("request_hash"),
    /** Sealed, because an answer may contain a secret that is shown only once. */
    sealedAnswer: column.bytes("sealed_answer"),
    answeredAtMs: column.integer("answered_at_ms"),
  },
  key: ["userId", "idempotencyKey"],
} as const;

/** Number of rows in each list; see list-counts.ts. */
const countTable = {
  name: "list_counts",
  columns: {
    /** The list with its filters. */
    listName: column.text("list_name"),
    rowCount: column.integer("row_count"),
  },
  key: ["listName"],
} as const;

export type IdempotentAnswersTable = RowOf<typeof answerTable.columns>;

declare module "../database/schema.ts" {
  interface Schema {
    list_counts: RowOf<typeof countTable.columns>;
    idempotent_answers: IdempotentAnswersTable;
  }
}

/** Tables that all records share. */
export const recordTables: TableOwner = {
  tables: { list_counts: ["list_name"], idempotent_answers: ["user_id", "idempotency_key"] },
  steps: {
    "0001-records": (types) => [
      createTable(types, countTable),
      createTable(types, answerTable),
      "create index idempotent_answers_by_answered_at_ms on idempotent_answers (answered_at_ms)",
    ],
  },
};
