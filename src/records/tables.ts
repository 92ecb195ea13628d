import type { TableOwner } from "../database/schema.ts";

/** Answers to calls with an idempotency key. */
export interface IdempotentAnswersTable {
  /** The caller. */
  user_id: string;
  idempotency_key: string;
  request_hash: string;
  /** Sealed: an answer may hold a secret that is shown only once. */
  sealed_answer: Uint8Array;
  answered_at_ms: number;
}

/** The number of rows of each list: see list-counts.ts. */
export interface ListCountsTable {
  /** The list with its filters. */
  list_name: string;
  row_count: number;
}

declare module "../database/schema.ts" {
  interface Schema {
    list_counts: ListCountsTable;
    idempotent_answers: IdempotentAnswersTable;
  }
}

/** The tables that all records share. */
export const recordTables: TableOwner = {
  tables: { list_counts: ["list_name"], idempotent_answers: ["user_id", "idempotency_key"] },
  steps: {
    "0001-records": ({ bytes, integer }) => [
      `create table list_counts (
        list_name text not null primary key,
        row_count ${integer} not null
      )`,
      `create table idempotent_answers (
        user_id text not null,
        idempotency_key text not null,
        request_hash text not null,
        sealed_answer ${bytes} not null,
        answered_at_ms ${integer} not null,
        primary key (user_id, idempotency_key)
      )`,
      "create index idempotent_answers_by_answered_at_ms on idempotent_answers (answered_at_ms)",
    ],
  },
};
