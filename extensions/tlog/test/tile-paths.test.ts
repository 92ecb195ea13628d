import { describe, expect, it } from "vitest";
import { countHashes } from "../../../src/merkle/tiles.ts";
import { formatTilePath, measureTile, parseTilePath } from "../tile-paths.ts";

describe("a tile path", () => {
  it.each([
    ["0/000", { kind: "hashes", level: 0, index: 0, width: 256 }],
    ["1/000.p/17", { kind: "hashes", level: 1, index: 0, width: 17 }],
    ["0/x001/x234/067", { kind: "hashes", level: 0, index: 1_234_067, width: 256 }],
    ["63/x001/000.p/255", { kind: "hashes", level: 63, index: 1000, width: 255 }],
    ["entries/x001/234.p/1", { kind: "entries", level: 0, index: 1234, width: 1 }],
  ] as const)("%s is parsed and formatted", (path, tile) => {
    expect(parseTilePath(path)).toEqual(tile);
    expect(formatTilePath(tile)).toBe(path);
  });

  it.each([
    ..." 0 0/ 0/0 00/000 64/000 -1/000 +1/000 0/1000 0/x000/001 0/001/000 0/x001 0/X001/000".split(" "),
    ..."0/000.p/0 0/000.p/00 0/000.p/01 0/000.p/256 0/000.p/999 0/000.p/ 0/000.p 0/000/".split(" "),
    ..."/0/000 0//000 0/../0/000 0/٠٠٠ entries entries/0/000 Entries/000".split(" "),
    ...["0/000\n", "0/000.p/1\n", "0/x999/x999/x999/x999/x999/999", "0/x001/x001/x001/x001/x001/x001/000"],
  ])("%j is rejected, because each tile has exactly one path", (path) => {
    expect(parseTilePath(path)).toBeUndefined();
  });
});

describe("a tree of 70,000 leaves", () => {
  it("has the tiles listed in the specification", () => {
    expect([0, 1, 2, 3].map((level) => countHashes(level, 70_000))).toEqual([70_000, 273, 1, 0]);
    const measure = (level: number, ...indices: number[]) =>
      indices.map((index) => measureTile({ level, index }, 70_000));
    expect(measure(0, 272, 273, 274)).toEqual([256, 112, 0]);
    expect([measure(1, 0, 1), measure(2, 0), measure(63, 0)]).toEqual([[256, 17], [1], [0]]);
  });
});
