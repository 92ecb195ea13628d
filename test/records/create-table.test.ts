/** The statements derived from a table's columns. */
import { describe, expect, it } from "vitest";
import { column } from "../../src/records/columns.ts";
import { addColumns, createRecordTable, createTable } from "../../src/records/create-table.ts";

const types = { kind: "postgres", text: "text", bytes: "bytea", integer: "bigint" } as const;
const columns = {
  boxId: column.text("box_id"),
  address: column.unique(column.text("address")),
  content: column.bytes("content"),
  openedAt: column.optionalTime("opened_at_ms"),
  note: column.added(column.optionalText("note")),
  tags: column.added(column.spacedList("tags")),
};

const { boxId, address, note } = columns;
const name = "boxes";

describe("a table", () => {
  it.each([
    [
      "has its original columns, with its key as the primary key",
      createTable(types, { name, columns, key: ["boxId"] }),
      "box_id text not null primary key, address text not null unique, content bytea not null, opened_at_ms bigint",
    ],
    [
      "has a separate line for a key of several columns",
      createTable(types, { name, columns: { boxId, address }, key: ["boxId", "address"] }),
      "box_id text not null, address text not null unique, primary key (box_id, address)",
    ],
    [
      "of records has positions before its columns and a tag after them",
      createRecordTable(types, { name, columns: { boxId, note }, key: ["boxId"] }),
      "position bigint not null primary key, box_id text not null unique, record_tag text not null",
    ],
    [
      "of records has no positions if another column orders it",
      createRecordTable(types, {
        ...{ name, columns: { boxId }, key: ["boxId"], tagColumn: "box_tag", orderedBy: "box_id" },
      }),
      "box_id text not null primary key, box_tag text not null",
    ],
  ])("%s", (_what, statement, inner) => {
    expect(statement.replaceAll(/\s+/g, " ")).toBe(`create table boxes ( ${inner} )`);
  });

  it("gets its added columns later, without a value in older rows", () => {
    expect(addColumns(types, name, [note, columns.tags])).toEqual([
      "alter table boxes add column note text",
      "alter table boxes add column tags text not null default ''",
    ]);
  });
});
