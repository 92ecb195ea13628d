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
const flat = (statement: string): string => statement.replaceAll(/\s+/g, " ");

describe("a table", () => {
  it("has its original columns, with its key as the primary key", () => {
    expect(flat(createTable(types, { name: "boxes", columns, key: ["boxId"] }))).toBe(
      "create table boxes ( box_id text not null primary key, address text not null unique, " +
        "content bytea not null, opened_at_ms bigint )",
    );
  });

  it("has a separate line for a key of several columns", () => {
    const { boxId, address } = columns;
    expect(
      flat(createTable(types, { name: "boxes", columns: { boxId, address }, key: ["boxId", "address"] })),
    ).toBe(
      "create table boxes ( box_id text not null, address text not null unique, primary key (box_id, address) )",
    );
  });

  it("of records has positions before its columns and a tag after them", () => {
    const { boxId, note } = columns;
    expect(flat(createRecordTable(types, { name: "boxes", columns: { boxId, note }, key: ["boxId"] }))).toBe(
      "create table boxes ( position bigint not null primary key, box_id text not null unique, record_tag text not null )",
    );
  });

  it("of records has no positions if another column orders it", () => {
    const table = {
      name: "boxes",
      columns: { boxId: columns.boxId },
      key: ["boxId"],
      tagColumn: "box_tag",
    } as const;
    expect(flat(createRecordTable(types, { ...table, orderedBy: "box_id" }))).toBe(
      "create table boxes ( box_id text not null primary key, box_tag text not null )",
    );
  });

  it("gets its added columns later, without a value in older rows", () => {
    expect(addColumns(types, "boxes", [columns.note, columns.tags])).toEqual([
      "alter table boxes add column note text",
      "alter table boxes add column tags text not null default ''",
    ]);
  });
});
