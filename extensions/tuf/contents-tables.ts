import type { TableOwner } from "../../src/database/schema.ts";
import { column, type RowOf } from "../../src/records/columns.ts";
import { createTable } from "../../src/records/create-table.ts";

/** The size and end of each content. No tag: the record of a target has length and hashes. */
const contentTable = {
  name: "tuf_contents",
  columns: {
    contentId: column.text("content_id"),
    /** User whose quota it uses. */
    owner: column.text("owner"),
    /** Bytes stored so far. */
    length: column.integer("content_length"),
    /** When it may be removed: an hour after the last piece of an unfinished upload; undefined for a target's. */
    expiresAt: column.optionalTime("expires_at_ms"),
  },
  key: ["contentId"],
} as const;

/** Contents in pieces of equal size, except the last. */
const pieceTable = {
  name: "tuf_pieces",
  columns: {
    contentId: column.text("content_id"),
    index: column.integer("piece_index"),
    piece: column.bytes("piece"),
  },
  key: ["contentId", "index"],
} as const;

declare module "../../src/database/schema.ts" {
  interface Schema {
    tuf_contents: RowOf<typeof contentTable.columns>;
    tuf_pieces: RowOf<typeof pieceTable.columns>;
  }
}

export const contentTables: TableOwner = {
  tables: { tuf_contents: ["content_id"], tuf_pieces: ["content_id", "piece_index"] },
  steps: {
    "0011-tuf-contents": (types) => [
      createTable(types, contentTable),
      "create index tuf_contents_by_owner on tuf_contents (owner)",
      "create index tuf_contents_by_expires_at_ms on tuf_contents (expires_at_ms)",
      createTable(types, pieceTable),
    ],
  },
};
