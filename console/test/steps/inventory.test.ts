import { describe, expect, it } from "vitest";
import { kinds, readRecord } from "../../page/tools/inventory/records.ts";

describe("a listed record", () => {
  it.each(kinds)("has the fields that name it and its state: $kind", ({ list, id, state }) => {
    const record = list.output.fields.find(({ fieldKind }) => fieldKind === "list")?.message;
    const fields = record?.fields.map(({ jsonName }) => jsonName) ?? [];
    expect(fields).toEqual(expect.arrayContaining([id, ...(state === undefined ? [] : [state])]));
  });

  const [key] = kinds;
  if (key === undefined) throw new Error("no kinds");
  it.each([
    ["its first name that is set", { alias: "old", name: "" }, { name: "old" }],
    ["the version of its name", { alias: "old", name: "new", version: 2 }, { name: "new, version 2" }],
    ["its number of signers", { signers: ["a", "b"], threshold: 1 }, { name: "1 of 2 signers" }],
    ["its state", { status: "ACTIVE" }, { state: "ACTIVE" }],
    ["a damaged tag instead of its state", { status: "ACTIVE", damaged: true }, { state: "DAMAGED" }],
    ["no ID that is not a text", { keyId: 5 }, { id: "" }],
  ])("shows %s", (_what, record, shown) => {
    expect(readRecord(key, record)).toMatchObject(shown);
  });
});
